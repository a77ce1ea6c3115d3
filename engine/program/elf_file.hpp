// ElfFile: the tables of a code object's ELF file, checked. Private to engine/program.
//
// ROCr checks none of these tables. An offset, an index or an address that is out of range makes it
// read or write outside of its memory, or fail an assertion, which ends the process. So
// check_elf_file() checks all that ROCr uses, before this library or ROCr uses any of it. Sources:
// ROCR-Runtime 5.2.3 and 6.1, amd_elf_image.cpp (tables, strings, notes), amd_hsa_code.cpp
// (symbols), executable.cpp (segments, symbols, relocations), amd_loader_context.cpp (memory).
//
// read_elf_image() reads what ROCr has loaded of such a file, where the section headers are
// missing.
//
// Thread safety: pure functions.
// Lifetime: all views refer to the bytes that were given.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace uptempo::detail {

// The value at an offset of untrusted bytes, if it is inside. Copies, because the input may be
// unaligned.
template <class T>
std::optional<T> read_at(std::span<const std::byte> bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return {};
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

struct ElfFile {
  std::span<const std::byte> bytes;  // the file
  // PT_LOAD, in order of their addresses, without overlap. The first begins at address 0.
  std::vector<Elf64_Phdr> segments;
  // Contents of the NT_AMDGPU_METADATA note, if there is one.
  std::optional<std::span<const std::byte>> metadata;
  // Defined symbols that are not local. ROCr takes those of .symtab, which a stripped file lacks;
  // those of .dynsym agree with them.
  std::unordered_map<std::string_view, Elf64_Sym> symbols;

  // Returns the symbol of that name, or null.
  const Elf64_Sym* find(std::string_view name) const;
  // Returns the file's bytes for addresses from `address` on. Empty if no segment has all of them
  // in the file.
  std::span<const std::byte> bytes_at(uint64_t address, uint64_t size) const;
};

// Reads a file whose ELF header says that it is an AMDGPU code object of version 3 or newer. Throws
// Error that names the defect. Cost: linear in the sizes of the tables.
ElfFile check_elf_file(std::span<const std::byte> file);

// Reads a code object as it is loaded: `image` begins with its ELF header, and the byte at index i
// is the one at address i. The metadata are those of the PT_NOTE segment, and the symbols those of
// the dynamic symbol table. Segments that the device may write are left out. The offsets of the
// others are their addresses, so that bytes_at() reads the image. Throws Error that names the
// defect, for tables that are not inside of the image, too.
ElfFile read_elf_image(std::span<const std::byte> image);

}  // namespace uptempo::detail
