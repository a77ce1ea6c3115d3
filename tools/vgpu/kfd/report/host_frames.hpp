// Names of the program's calls, for findings: functions from the symbol tables of the program and
// its libraries, source lines from their debug information. Of a Python program, there are its own
// calls in place of the interpreter's.
//
// Modules are those of /proc/self/maps, and their files are read, so that no lock of the dynamic
// loader is taken: the caller is a device thread, and a thread that holds that lock may wait for
// it.
//
// Errors: what is not known stays empty.
// Thread safety: thread-compatible.
// Cost: an address that was not asked for before searches its module's symbols and line table, and
// reads /proc/self/maps again if no known module contains it. Results are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/fences/report/finding_text.hpp"
#include "device/fences/report/remedy.hpp"
#include "kfd/report/dwarf_library.hpp"

namespace uptempo::vgpu::kfd {

class HipEntries;
class HostImage;

class HostFrames {
 public:
  // `library` lives longer than this object.
  explicit HostFrames(const DwarfLibrary& library);
  ~HostFrames();
  HostFrames(const HostFrames&) = delete;
  HostFrames& operator=(const HostFrames&) = delete;

  // The calls of a stack that tell a programmer most: the runtime's function that the program
  // called, and at most kMostOfProgram of the program's own functions, innermost first. Then its
  // Python calls (tools/support/python_calls.hpp).
  static constexpr size_t kMostOfProgram = 6;
  std::vector<fences::HostFrame> frames(std::span<const uintptr_t> stack);

  // The instruction of a site (support::code_site()), then the calls of inlined functions that it
  // is part of, then the Python call. Not empty. Without debug information, the Python call only.
  std::vector<fences::HostFrame> place(uint64_t site);

  // The runtime's functions between the program's call and the innermost one, outermost first.
  struct RuntimeCall {
    uintptr_t address = 0;  // in the calling instruction
    std::string function;   // empty: not exported
    bool hip = false;
  };
  std::vector<RuntimeCall> runtime_calls(std::span<const uintptr_t> stack);

  // The library that the program called, if the stack has it. Uptempo's functions need their names
  // in the symbol table.
  std::optional<fences::Library> library(std::span<const uintptr_t> stack);

  // Whether HIP is among the modules that are known so far. The first call reads them.
  bool is_hip();

 private:
  // A file's executable mapping.
  struct Mapped {
    uintptr_t begin, end;
    uint64_t offset;
    std::string path;
  };
  // `interpreter`: of Python, where the stack has its calls; else the program.
  enum class Owner : uint8_t { program, runtime, device, interpreter };
  struct Frame {
    // Innermost first: inlined functions, then the one that contains the address. Not empty.
    std::vector<fences::HostFrame> calls = std::vector<fences::HostFrame>(1);
    Owner owner = Owner::program;
  };

  // `address`: of code, or a kPythonFrame.
  const Frame& frame(uintptr_t address);
  const Mapped* mapping_of(uintptr_t address);
  void read_maps();
  HostImage& image(const std::string& path);

  const DwarfLibrary& library_;
  std::vector<Mapped> mapped_;
  bool is_hip_ = false;
  std::unordered_map<std::string, std::unique_ptr<HostImage>> images_;
  std::unique_ptr<HipEntries> hip_entries_;
  std::unordered_map<uintptr_t, Frame> known_;
};

}  // namespace uptempo::vgpu::kfd
