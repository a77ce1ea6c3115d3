#include "engine/program/elf_symbols.hpp"

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <utility>

#include "engine/program/bytes.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo::detail {
namespace {

[[noreturn]] void refuse(std::string_view symbol, std::string found) {
  throw Error({.status = HSA_STATUS_ERROR_INVALID_CODE_OBJECT,
               .call = "code object",
               .asked = fmt::format("the symbol '{}'", symbol),
               .found = std::move(found),
               .remedy = "pass a code object as the linker wrote it, with its dynamic symbols"});
}

// True if a zero-terminated string at the offset equals `text`.
bool is_string_at(std::span<const std::byte> bytes, uint64_t offset, std::string_view text) {
  return offset < bytes.size() && bytes.size() - offset > text.size() &&
         std::memcmp(bytes.data() + offset, text.data(), text.size()) == 0 &&
         bytes[offset + text.size()] == std::byte{0};
}

}  // namespace

std::optional<Elf64_Sym> find_symbol(std::span<const std::byte> elf, std::string_view name) {
  const auto header = read_at<Elf64_Ehdr>(elf, 0);
  if (!header) refuse(name, "an ELF file without a header");
  const auto section = [&](uint32_t i) {
    return i < header->e_shnum ? read_at<Elf64_Shdr>(elf, header->e_shoff + i * sizeof(Elf64_Shdr))
                               : std::nullopt;
  };
  for (uint32_t i = 0; i < header->e_shnum; ++i) {
    const auto symbols = section(i);
    if (!symbols || symbols->sh_type != SHT_DYNSYM) continue;
    const auto strings = section(symbols->sh_link);
    if (!strings) refuse(name, "a symbol table without names");
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols->sh_size; at += sizeof(Elf64_Sym)) {
      const auto entry = read_at<Elf64_Sym>(elf, symbols->sh_offset + at);
      if (!entry) refuse(name, "a symbol table that is cut off");
      if (entry->st_shndx != SHN_UNDEF &&
          is_string_at(elf, strings->sh_offset + entry->st_name, name))
        return entry;
    }
  }
  return {};
}

}  // namespace uptempo::detail
