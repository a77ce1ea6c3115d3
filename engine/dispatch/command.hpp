// One entry of a batch: a kernel dispatch with its arguments in place, or a finished packet of the caller's.
//
// Private to engine/dispatch. Plain data; what the fence plan reads of it is its PacketIntent.
#pragma once

#include <cstdint>

#include "aql/packet.hpp"

namespace uptempo {

// Which packets of a batch get a completion signal for the sake of their times. Results of different modes are not comparable: every
// further signal costs the device a write and the host an event-less signal of the pool.
enum class Timing : uint8_t {
  none,
  batch,  // first and last packet
  each,   // every packet
};

namespace detail {

struct Command {
  enum class Kind : uint8_t {
    dispatch,
    raw,      // Publication::raw[raw]
    closing,  // a barrier-AND packet that carries the completion signal behind a raw packet
  };

  uint64_t kernel_object = 0;
  void* kernargs = nullptr;
  aql::Size3 grid{};
  aql::Size3 workgroup{};
  uint32_t private_segment_size = 0;
  uint32_t group_segment_size = 0;
  uint32_t raw = 0;  // index of the caller's packet
  uint16_t dimensions = 1;
  Kind kind = Kind::dispatch;
};

}  // namespace detail
}  // namespace uptempo
