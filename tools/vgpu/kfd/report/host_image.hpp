// HostImage: a file of the program or of a library, mapped, for its symbols and debug information.
//
// Errors: every offset in the file is checked; what is not there or damaged stays empty.
// Thread safety: const functions may run at the same time, except for those of libdw on `dwarf`.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kfd/report/dwarf_library.hpp"

namespace uptempo::vgpu::kfd {

class HostImage {
 public:
  // `library` lives longer than this object.
  HostImage(const std::string& path, const DwarfLibrary& library);
  ~HostImage();
  HostImage(const HostImage&) = delete;
  HostImage& operator=(const HostImage&) = delete;

  // The bytes of the file from `offset` on.
  template <typename T>
  std::optional<T> read(uint64_t offset) const {
    if (bytes_ == nullptr || offset > size_ || size_ - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_ + offset, sizeof value);
    return value;
  }

  // The bytes at an address, as symbols and debug information have it. Empty if the file does not
  // have all of them.
  std::string_view bytes_at(uint64_t address, size_t count) const;
  // The address of a byte of the file.
  std::optional<uint64_t> address_of(uint64_t offset) const;
  // Calls `visit` with each segment that is loaded.
  void for_each_segment(const std::function<void(const Elf64_Phdr&)>& visit) const;

  // The function that contains the address: from .symtab, or else from .dynsym, where functions
  // that are not exported are missing.
  std::string function_at(uint64_t address) const;
  // Calls `visit` with each function of .dynsym, and its name as the linker has it.
  void for_each_exported(
      const std::function<void(const char* name, const Elf64_Sym&)>& visit) const;

  // A Dwarf of libdw; null: none, or no libdw.
  void* dwarf() const { return dwarf_; }

 private:
  void for_each_function(uint32_t table_type,
                         const std::function<bool(const char*, const Elf64_Sym&)>& goes_on) const;

  const DwarfLibrary& library_;
  char* bytes_ = nullptr;
  size_t size_ = 0;
  Elf64_Ehdr header_{};  // without sections: no ELF file
  void* elf_ = nullptr;
  void* dwarf_ = nullptr;
};

}  // namespace uptempo::vgpu::kfd
