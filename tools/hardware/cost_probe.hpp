// The costs of a packet's barrier bit, fences, signal and doorbell.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <vector>

#include "tools/hardware/probe.hpp"

namespace uptempo::hardware {

// alone, barrier bit, acquire agent, acquire system, release agent, release system, signal,
// doorbell
inline constexpr size_t kCostRows = 8;
// Nanoseconds per packet of each row; element i of all rows was measured in the same round.
using CostTimes = std::array<std::vector<double>, kCostRows>;

// Differs if packets with a narrower fence cost clearly more than those with the wider one, or
// packets without a barrier bit more than those with it.
Answer answer_of_costs(const CostTimes& ns);

}  // namespace uptempo::hardware
