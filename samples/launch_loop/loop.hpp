// The loop: all ways take turns at it, are timed and counted, and compared with the host. Slow ways take a twentieth of the steps.
//
// Thread safety: pure but for the device and the process's counts.
#pragma once

#include <engine/uptempo.hpp>

#include <cstdint>
#include <vector>

#include "samples/launch_loop/device_membrane.hpp"
#include "tools/support/hsa_calls.hpp"

namespace uptempo::launch_loop {

// Before the figures: what is made once has been made then.
inline constexpr uint32_t first_steps = 10;

struct Loop {
  uint32_t steps = 2000;  // more than the first ones
  uint32_t kernels = 60;  // of a step
};

struct Row {
  Way way;
  uint32_t steps = 0;                 // all that it has taken
  uint32_t counted_steps = 0;         // without the first ones
  std::vector<double> us_per_step{};  // of each turn
  // Of these, until all kernels but the last one had been handed over, or carried out where the host waits for each.
  std::vector<double> host_us_per_step{};
  support::HsaCalls calls{};  // from outside
  Counters counters{};        // the engine's own
  uint32_t wrong_observations = 0;
  bool right_state = false;

  bool is_right() const noexcept { return wrong_observations == 0 && right_state; }
};

// A row for each way, in their order. Throws Error.
std::vector<Row> run(const Agent& gpu, const Loop& loop);

}  // namespace uptempo::launch_loop
