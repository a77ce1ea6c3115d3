#include "cp/kernel_name.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>

namespace uptempo::vgpu {
namespace {

constexpr GpuAddress kPageBytes = 4096;  // ROCr allocates code objects in pages
constexpr uint16_t kMachineAmdGpu = 224;
constexpr uint64_t kMaxSymbols = 1u << 20;

// A code object's image in GPU memory. Every read is checked, because the program may have written
// anything there.
class LoadedImage {
 public:
  LoadedImage(AddressSpace::Reader& memory, GpuAddress base) : memory_(memory), base_(base) {}

  template <typename T>
  std::optional<T> read(uint64_t offset) const {
    const std::byte* bytes = memory_.translate(base_ + offset, sizeof(T), Access::read);
    if (bytes == nullptr) return std::nullopt;
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }

  bool is_code_object() const {
    const auto header = read<Elf64_Ehdr>(0);
    return header && std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_machine == kMachineAmdGpu;
  }

  // Returns the dynamic symbol whose value is `offset`.
  std::optional<std::string> symbol_at(uint64_t offset) const {
    const auto header = read<Elf64_Ehdr>(0);
    uint64_t symbols = 0, strings = 0, hash = 0;
    for (unsigned index = 0; index < header->e_phnum; ++index) {
      const auto segment = read<Elf64_Phdr>(header->e_phoff + index * sizeof(Elf64_Phdr));
      if (!segment) return std::nullopt;
      if (segment->p_type != PT_DYNAMIC) continue;
      for (uint64_t at = 0; at < segment->p_memsz; at += sizeof(Elf64_Dyn)) {
        const auto entry = read<Elf64_Dyn>(segment->p_vaddr + at);
        if (!entry || entry->d_tag == DT_NULL) break;
        if (entry->d_tag == DT_SYMTAB) symbols = entry->d_un.d_ptr;
        if (entry->d_tag == DT_STRTAB) strings = entry->d_un.d_ptr;
        if (entry->d_tag == DT_HASH) hash = entry->d_un.d_ptr;
      }
    }
    if (symbols == 0 || strings == 0 || hash == 0) return std::nullopt;
    // DT_HASH's second word is the number of symbols (System V ABI, "Hash Table").
    const uint64_t count = std::min<uint64_t>(read<uint32_t>(hash + 4).value_or(0), kMaxSymbols);
    for (uint64_t index = 1; index < count; ++index) {
      const auto symbol = read<Elf64_Sym>(symbols + index * sizeof(Elf64_Sym));
      if (!symbol) return std::nullopt;
      if (symbol->st_value != offset || symbol->st_name == 0) continue;
      return text_at(strings + symbol->st_name);
    }
    return std::nullopt;
  }

 private:
  std::optional<std::string> text_at(uint64_t offset) const {
    std::string text;
    for (;; ++offset) {
      const auto letter = read<char>(offset);
      if (!letter) return std::nullopt;
      if (*letter == '\0') return text;
      const auto code = static_cast<unsigned char>(*letter);
      text.push_back(code < 0x20 || code == 0x7f ? ' ' : *letter);
    }
  }

  AddressSpace::Reader& memory_;
  GpuAddress base_;
};

}  // namespace

std::string kernel_name(AddressSpace::Reader& memory, GpuAddress kernel_object) {
  if (const Mapping* mapping = memory.find(kernel_object)) {
    const GpuAddress lowest = mapping->begin;
    for (GpuAddress base = kernel_object / kPageBytes * kPageBytes; base >= lowest;
         base -= kPageBytes) {
      const LoadedImage image(memory, base);
      if (image.is_code_object()) {
        if (auto name = image.symbol_at(kernel_object - base); name && !name->empty()) return *name;
        break;
      }
      if (base < kPageBytes) break;
    }
  }
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(kernel_object));
  return text;
}

}  // namespace uptempo::vgpu
