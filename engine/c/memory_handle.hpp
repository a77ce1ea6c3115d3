// The handle of memory in the C interface, and the ranges and patterns of copies and fills.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include <uptempo/c/memory.h>
#include <uptempo/c/call.hpp>
#include <uptempo/memory/buffer.hpp>
#include <uptempo/stream/copy/copy_memory.hpp>

struct uptempo_buffer : uptempo::c::Handle<uptempo::c::Kind::buffer> {
  explicit uptempo_buffer(uptempo::Allocation&& allocation) : memory(std::move(allocation)) {}
  uptempo::Allocation memory;
};

namespace uptempo::c {

// `Range`: CopyTarget or CopySource. Throws Error for a place that does not exist, and for a peer
// without an owner.
template <class Range>
Range range_of(const uptempo_range& given, std::string_view parameter) {
  switch (given.place) {
    case UPTEMPO_PLACE_DEVICE: {
      Range range = Range::device(given.data, given.bytes);
      if constexpr (std::is_same_v<Range, CopyTarget>)
        if (given.host_writes != 0) range = range.host_writes();
      return range;
    }
    case UPTEMPO_PLACE_PINNED:
      return Range::pinned(given.data, given.bytes);
    case UPTEMPO_PLACE_PAGEABLE:
      return Range::pageable(given.data, given.bytes);
    case UPTEMPO_PLACE_PEER:
      return Range::peer(handle(given.owner, parameter).agent, given.data, given.bytes);
  }
  refuse_parameter(parameter, "its place is " + std::to_string(given.place),
                   "use a constant of uptempo_place");
}

[[noreturn]] void refuse_pattern(size_t bytes);

// Calls fill() with the pattern as a value of its size. Throws Error for another size.
template <class Fill>
auto with_pattern(const void* pattern, size_t bytes, Fill&& fill) {
  const auto* const from = &place(static_cast<const std::byte*>(pattern), "pattern");
  const auto with = [&]<size_t Bytes>(std::integral_constant<size_t, Bytes>) {
    std::array<std::byte, Bytes> value;
    std::memcpy(value.data(), from, Bytes);
    return fill(value);
  };
  switch (bytes) {
    case 1:
      return with(std::integral_constant<size_t, 1>());
    case 2:
      return with(std::integral_constant<size_t, 2>());
    case 4:
      return with(std::integral_constant<size_t, 4>());
    case 8:
      return with(std::integral_constant<size_t, 8>());
    case 16:
      return with(std::integral_constant<size_t, 16>());
    default:
      refuse_pattern(bytes);
  }
}

}  // namespace uptempo::c
