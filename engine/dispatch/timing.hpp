// Timing: the packets of a batch or a recording whose device times Completion::times() returns.
#pragma once

#include <cstdint>

namespace uptempo {

// Packets that get a completion signal for their times. Results of different modes are not
// comparable: each additional signal costs the device a write and the host an event-less signal of
// the pool.
enum class Timing : uint8_t {
  none,
  batch,  // first and last packet
  each,   // every packet
};

}  // namespace uptempo
