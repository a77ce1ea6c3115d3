// FlightHeaders: the headers that a record of flight_recorder.hpp keeps. Private: Publication,
// which the templates of BatchSubmitter need, makes them.
//
// Thread safety: a value.
#pragma once

#include <cstdint>

#include <uptempo/aql/packet.hpp>

namespace uptempo::detail {

// Headers of a submission's first, last and other packets. kInvalidHeader: not known.
struct alignas(8) FlightHeaders {
  uint16_t first = aql::kInvalidHeader, last = aql::kInvalidHeader;
  uint16_t between = aql::kInvalidHeader;  // of all others, if they have the same
  uint16_t unused = 0;

  // Header of packet `i` of `count`.
  constexpr uint16_t of(uint64_t i, uint64_t count) const noexcept {
    return i == 0 ? first : i + 1 == count ? last : between;
  }
};

}  // namespace uptempo::detail
