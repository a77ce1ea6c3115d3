// Dependent dispatches, each of which reads what the one before has written. The shapes are those
// of ROCm/rocm-systems issue 10834, whose kernel adds to each output element.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

#include <uptempo/runtime/agent.hpp>
#include "tools/hardware/chain_times.hpp"
#include "tools/hardware/probe.hpp"

namespace uptempo::hardware {

inline constexpr uint32_t kChainWorkgroup = 64;  // work-items

struct ChainShape {
  uint32_t dispatches, workgroups;
  uint32_t words() const noexcept { return workgroups * kChainWorkgroup; }
};
inline constexpr std::array kChainShapes{ChainShape{1, 1}, ChainShape{941, 1},
                                         ChainShape{941, 128}};
inline constexpr uint32_t kChainRuns = 15;  // of each shape that are timed

using Chain = std::function<ChainTimes()>;

// Runs chains of every shape, first untimed for some time, so that clocks are not idle, then
// kChainRuns times. `prepare` returns a function that runs a chain over device memory which holds
// zeros: dispatch i makes 3 x + i of each word x. A wrong word makes the answer differ.
// `device_time` says between which events the device's time is. Throws Error.
Answer run_chains(const Agent& gpu, std::string_view device_time,
                  const std::function<Chain(const ChainShape& shape, uint32_t* words)>& prepare);

}  // namespace uptempo::hardware
