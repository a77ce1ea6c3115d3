// Floors: the machine's own time for the command processor's work. No packet processor that is a
// thread can be faster.
//
// Each floor runs a thread on `core`, which is not the caller's, and ends it before it returns.
#pragma once

#include <vector>

#include "tools/bench/vgpu/consume/gpu.hpp"

namespace uptempo::vgpu::consume {

// Nanoseconds per packet for another core to take the packets of a ring that this core filled. It
// reads each header, copies the 64 bytes, stores INVALID and decodes nothing. The queue's device is
// not involved, because write index and doorbell do not change.
double take_ring(Queue& queue, const Packet& packet, int core);

// Nanoseconds of each of `count` round trips: this core stores a line, the other core sees it and
// answers in another line.
std::vector<double> echoes(size_t count, int core);

// The same from a thread that has slept in a futex for `pause_us`.
std::vector<double> futex_echoes(size_t count, int core, unsigned pause_us);

}  // namespace uptempo::vgpu::consume
