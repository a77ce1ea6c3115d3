// WaitPolicy: whether a wait for a completion spins, sleeps, or does first one and then the other.
#pragma once

#include <chrono>
#include <cstdint>

namespace uptempo {

enum class WaitMode : uint8_t {
  active,   // spin: lowest latency, one core busy
  blocked,  // sleep in the driver: no core busy, 5-50 us added latency
  hybrid,   // spin for WaitPolicy::spin, then sleep
};

// After the spin window, ROCr 5.2.3 polls for another 200 us before it sleeps
// (interrupt_signal.cpp, WaitRelaxed). A longer window therefore ends no wait earlier and makes
// every long wait more expensive. A wait of 24 ms takes 1.7 % of a core with 20 us and 2.3 % with
// 100 us (tools/bench/wait; figures in its README).
struct WaitPolicy {
  WaitMode mode = WaitMode::hybrid;
  std::chrono::nanoseconds spin = std::chrono::microseconds(20);
};

}  // namespace uptempo
