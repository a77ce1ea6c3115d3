// Reads values from untrusted bytes. Private to engine/program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace uptempo::detail {

// The value at an offset, if it is inside. Copies, because the input may be unaligned.
template <class T>
std::optional<T> read_at(std::span<const std::byte> bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return {};
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace uptempo::detail
