// The loop: all ways take turns, are timed and counted, and compared with the host. Slow ways run a
// twentieth of the steps.
//
// Thread safety: pure, except for the device and the process's counters.
#pragma once

#include <uptempo/uptempo.hpp>

#include <cstdint>
#include <vector>

#include "device_membrane.hpp"

namespace uptempo::launch_loop {

// Untimed steps in which objects of first use are created.
inline constexpr uint32_t kFirstSteps = 10;

struct Loop {
  uint32_t steps = 2000;  // must exceed kFirstSteps
  uint32_t kernels = 60;  // per step
};

struct Row {
  Way way;
  uint32_t steps = 0;                 // all steps that it has run
  uint32_t counted_steps = 0;         // without the first steps
  std::vector<double> us_per_step{};  // one value per turn
  // The part of that time until all kernels but the last were submitted, or executed if the host
  // waits for each.
  std::vector<double> host_us_per_step{};
  Counters counters{};
  uint32_t wrong_observations = 0;
  bool right_state = false;

  bool is_right() const noexcept { return wrong_observations == 0 && right_state; }
};

// One row per way, in their order. Throws Error.
std::vector<Row> run(const Agent& gpu, const Loop& loop);

}  // namespace uptempo::launch_loop
