// Source lines of code that the runtime has loaded, for hang reports and findings.
//
// The code objects with their debug information are those that ROCr lists for debuggers
// (_amdgpu_r_debug: a link_map whose names are URIs of a file or of the program's memory). A line
// is used only if the code object's bytes at the place are those in the device's memory, because
// the program may have freed or reused the object since. libdw of elfutils reads .debug_line. It is
// loaded when the first line is asked for, so the virtual GPU does not depend on it.
//
// The loader's lock may be held by a thread that waits for the device, so a thread of its own loads
// the library, and a report waits for it for a bounded time.
//
// Errors: a place without a known line gives an empty text; missing() then says why.
// Thread safety: line() from one thread. Cost: some milliseconds for each code object, kept for the
// object's life.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cp/report/source_lookup.hpp"
#include "device/memory.hpp"
#include "kfd/report/dwarf_library.hpp"

namespace uptempo::vgpu::kfd {

class SourceLines final : public SourceLookup {
 public:
  // `library` lives longer than this object. Null: line() loads it.
  explicit SourceLines(const std::vector<AddressSpace*>& memory_of_gpus,
                       const DwarfLibrary* library = nullptr);
  ~SourceLines() override;
  SourceLines(const SourceLines&) = delete;
  SourceLines& operator=(const SourceLines&) = delete;

  // Prepares on the calling thread, which may hold the loader's lock, so that line() need not wait.
  // ROCr must be loaded.
  void open_now();

  std::string line(uint32_t gpu, GpuAddress pc) override;
  std::string missing() const override { return missing_; }
  // Whether no place has a line, after a call of line(). missing() says why.
  bool has_none() const noexcept;

 private:
  struct Impl;
  void open();
  void take(std::unique_ptr<Impl> impl);

  // Made at once, because a Reader cannot be made in a section of another one while a thread
  // unmaps.
  std::vector<std::unique_ptr<AddressSpace::Reader>> memory_;
  const DwarfLibrary* const library_;
  bool opened_ = false;
  std::unique_ptr<Impl> impl_;  // null: there are no lines
  std::string missing_;
};

}  // namespace uptempo::vgpu::kfd
