// Dependent dispatches, each of which reads what the one before has written. The shapes are those
// of ROCm/rocm-systems issue 10834, whose kernel adds to each output element.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/runtime/agent.hpp"
#include "tools/hardware/chain_times.hpp"
#include "tools/hardware/probe.hpp"

namespace uptempo::hardware {

inline constexpr uint32_t kChainWorkgroup = 64;  // work-items

struct ChainShape {
  uint32_t dispatches, workgroups;
  uint32_t words() const noexcept { return workgroups * kChainWorkgroup; }
};

using Chain = std::function<ChainTimes()>;

// Runs chains of every shape several times. `prepare` returns a function that runs a chain over
// device memory which holds zeros: dispatch i makes 3 x + i of each word x. A wrong word makes the
// answer differ. The first run of a shape is not timed. Throws Error.
Answer run_chains(const Agent& gpu,
                  const std::function<Chain(const ChainShape& shape, uint32_t* words)>& prepare);

}  // namespace uptempo::hardware
