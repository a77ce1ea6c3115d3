// A code object's image in GPU memory. ROCr loads its segments unchanged.
//
// The linker places the ELF header, .dynsym, .dynstr and the note with the metadata in the first
// segment, before the kernel descriptors. So the image of a kernel object begins at the nearest ELF
// header below it. Every read is checked, because the program may have written anything there.
//
// Thread safety: that of the reader. Call it between the reader's enter() and leave().
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "device/memory.hpp"

namespace uptempo::vgpu {

class CodeImage {
 public:
  // The image with the kernel object; empty: no ELF header is in the mapping below it.
  static std::optional<CodeImage> of(AddressSpace::Reader& memory, GpuAddress kernel_object);

  GpuAddress base() const noexcept { return base_; }

  // The dynamic symbol whose value is `offset`. Control characters become spaces.
  std::optional<std::string> symbol_at(uint64_t offset) const;
  // The MessagePack of the note NT_AMDGPU_METADATA (LLVM AMDGPUUsage, "Code Object V3 Metadata");
  // empty: there is none. Valid as long as the mapping.
  std::span<const std::byte> metadata() const;

 private:
  CodeImage(AddressSpace::Reader& memory, GpuAddress base) : memory_(memory), base_(base) {}

  bool is_code_object() const;
  // Empty: not all bytes are mapped.
  std::span<const std::byte> bytes(uint64_t offset, uint64_t size) const;
  template <typename T>
  std::optional<T> read(uint64_t offset) const {
    const std::span<const std::byte> from = bytes(offset, sizeof(T));
    if (from.empty()) return std::nullopt;
    T value;
    std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  std::optional<std::string> text_at(uint64_t offset) const;
  // Calls visit(program header) for each segment, until it returns true.
  template <typename Visit>
  void for_segments(Visit visit) const;

  AddressSpace::Reader& memory_;
  GpuAddress base_;
};

}  // namespace uptempo::vgpu
