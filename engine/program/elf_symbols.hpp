// Finds dynamic symbols of a code object. Private to engine/program.
#pragma once

#include <elf.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace uptempo::detail {

// Returns the defined dynamic symbol of that name, if there is one. read_code_object() has checked
// the table of sections. Throws Error for a symbol table that is cut off.
std::optional<Elf64_Sym> find_symbol(std::span<const std::byte> elf, std::string_view name);

}  // namespace uptempo::detail
