// FlightHeaders: the headers that a record of flight_recorder.hpp keeps. Private: Publication,
// which the templates of BatchSubmitter need, makes them.
//
// Thread safety: a value.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>

#include "aql/packet.hpp"

namespace uptempo::detail {

// Headers of a submission's first, last and other packets, eight bits each: type, barrier bit and
// scopes.
class FlightHeaders {
 public:
  constexpr FlightHeaders() = default;
  constexpr FlightHeaders(uint16_t first, uint16_t last) noexcept
      : bits_(packed(first) | packed(last) << 8) {}
  // All packets between the first and the last one have the same header.
  constexpr FlightHeaders(uint16_t first, uint16_t between, uint16_t last) noexcept
      : bits_(packed(first) | packed(last) << 8 | packed(between) << 16 | kBetween) {}
  static constexpr FlightHeaders from(uint32_t bits) noexcept {
    FlightHeaders headers;
    headers.bits_ = bits;
    return headers;
  }
  constexpr uint32_t bits() const noexcept { return bits_; }
  // Header of packet `i` of `count`; kInvalidHeader if it is not known.
  constexpr uint16_t of(uint64_t i, uint64_t count) const noexcept {
    if (i == 0) return unpacked(bits_);
    if (i + 1 == count) return unpacked(bits_ >> 8);
    return (bits_ & kBetween) != 0 ? unpacked(bits_ >> 16) : aql::kInvalidHeader;
  }

 private:
  static constexpr uint32_t kBetween = 1u << 24;
  // HSA's packet types need three of their eight bits.
  static constexpr uint32_t packed(uint16_t header) noexcept {
    return (header & 7u) | (header >> HSA_PACKET_HEADER_BARRIER & 0x1fu) << 3;
  }
  static constexpr uint16_t unpacked(uint32_t bits) noexcept {
    return static_cast<uint16_t>((bits & 7u) | (bits >> 3 & 0x1fu) << HSA_PACKET_HEADER_BARRIER);
  }
  uint32_t bits_ = packed(aql::kInvalidHeader) | packed(aql::kInvalidHeader) << 8;
};

}  // namespace uptempo::detail
