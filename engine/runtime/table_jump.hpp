// The code of an exported HSA function: a jump through ROCr's function table. Private to
// engine/runtime and its tests.
//
// Thread safety: a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace uptempo::detail {

// `mov POINTER(%rip), REG; jmp *SLOT(REG)`, which is what GCC and Clang make of a call through a
// pointer to a table in the same library.
struct TableJump {
  ptrdiff_t pointer = 0;  // address of the pointer to the table, from the first byte of the code
  ptrdiff_t slot = 0;     // offset in the table
};

// Decodes the first bytes of a function. Empty if they are anything else, and on other processors
// than x86-64.
std::optional<TableJump> decode_table_jump(std::span<const uint8_t> code) noexcept;

// Number of bytes that the longest form of the jump takes.
inline constexpr size_t kTableJumpBytes = 4 + 7 + 1 + 6;

}  // namespace uptempo::detail
