// What the machine itself takes for what the command processor does: no packet processor made of a thread can be faster.
//
// Each floor runs a thread of its own on `core`, which is not the caller's, and ends it before it returns.
#pragma once

#include <vector>

#include "tools/bench/vgpu/consume/gpu.hpp"

namespace uptempo::vgpu::consume {

// Nanoseconds per packet: another core takes the packets of a ring that this one has filled. It reads each header, copies the 64 bytes, stores INVALID and
// looks at nothing. The queue's device sees none of it, because write index and doorbell stay what they were.
double take_ring(Queue& queue, const Packet& packet, int core);

// Nanoseconds of each of `count` round trips: a line stored here, seen there, answered by another line.
std::vector<double> echoes(size_t count, int core);

// The same from a thread that has slept in a futex for `pause_us`.
std::vector<double> futex_echoes(size_t count, int core, unsigned pause_us);

}  // namespace uptempo::vgpu::consume
