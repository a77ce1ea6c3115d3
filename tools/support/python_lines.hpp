// The source line of an instruction of CPython, from its code object's table of locations (3.11 and
// newer). Source of the format: CPython, InternalDocs/code_objects.md, "Source code locations".
//
// Includes nothing of the tree, because tools/vgpu, a project of its own, uses it, too.
//
// Thread safety: pure function; async-signal-safe.
// Cost: the entries before the instruction, about 2 ns each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace uptempo::support {

// `table`: co_linetable. `first_line`: co_firstlineno. `unit`: the instruction, in code units of
// two bytes; below 0: the code has not begun. Returns 0 if the instruction has no line.
inline int64_t python_line(std::span<const uint8_t> table, int64_t first_line,
                           int64_t unit) noexcept {
  // The forms of an entry that have a line of their own. All others stay on the line.
  constexpr unsigned kOneLine = 10, kNoColumns = 13, kLong = 14, kNone = 15;
  if (unit < 0) return first_line;
  const auto is_begin = [&](size_t at) { return (table[at] & 0x80u) != 0; };
  auto line =
      static_cast<uint64_t>(first_line);  // unsigned, because a damaged table may overflow it
  int64_t end = 0;                        // of the entry, in code units
  for (size_t at = 0; at < table.size();) {
    if (!is_begin(at)) return 0;
    const unsigned form = table[at] >> 3u & 15u;
    end += (table[at] & 7u) + 1;
    ++at;
    if (form == kNoColumns || form == kLong) {
      // Six bits a byte, lowest first; the sign is the lowest bit.
      uint64_t value = 0;
      for (unsigned shift = 0; at < table.size() && shift < 64; shift += 6) {
        const uint8_t byte = table[at++];
        value |= uint64_t{byte & 63u} << shift;
        if ((byte & 64u) == 0) break;
      }
      const uint64_t size = value >> 1u;
      line += (value & 1u) != 0 ? -size : size;
    } else if (form >= kOneLine && form < kNoColumns) {
      line += form - kOneLine;
    }
    if (unit < end) return form == kNone ? 0 : static_cast<int64_t>(line);
    while (at < table.size() && !is_begin(at)) ++at;  // the columns
  }
  return 0;
}

}  // namespace uptempo::support
