// The device's clocks. GET_CLOCK_COUNTERS and packet timestamps must use the same clock, otherwise
// ROCr's conversion to host time is wrong.
#pragma once

#include <cstdint>

namespace uptempo::vgpu {

// GPU ticks: 100 MHz, CLOCK_MONOTONIC / 10. Written to start_ts and end_ts of a completion signal.
uint64_t gpu_clock_ticks() noexcept;

// Host nanoseconds on the same clock (CLOCK_MONOTONIC): the `start_ns` and `end_ns` of the trace.
uint64_t host_clock_ns() noexcept;

}  // namespace uptempo::vgpu
