// Sleep of one thread on one signal. Private to Timeline.
//
// Requires that the thread is the signal's only waiter (wait_leaders.hpp). A signal with an event
// wakes it. On a signal without an event ROCr would spin; there the thread polls (aql/pause.hpp),
// at last every kLongestPause.
//
// Thread safety: any thread; the signal must exist until the function returns.
#pragma once

#include <hsa/hsa.h>

#include <algorithm>
#include <chrono>

#include "aql/amd_abi.hpp"
#include "aql/deadline.hpp"
#include "aql/pause.hpp"
#include "engine/runtime/signal.hpp"

namespace uptempo::detail {

// Time until the deadline, between zero and `at_most`.
inline std::chrono::nanoseconds until(Deadline deadline,
                                      std::chrono::nanoseconds at_most) noexcept {
  using std::chrono::nanoseconds;
  if (deadline.is_never()) return at_most;
  if (deadline.is_now()) return nanoseconds::zero();
  return std::clamp<nanoseconds>(deadline.when() - Deadline::Clock::now(), nanoseconds::zero(),
                                 at_most);
}

// Returns when `over()` is true or the deadline has passed. Calls `over` before each sleep, of at
// most kLongestSleep.
template <class Over>
void sleep_on(hsa_signal_t signal, Deadline deadline, Over&& over) noexcept {
  if (aql::has_interrupt(signal)) {
    while (!over() && !deadline.passed()) {
      hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1,
                                ticks_in(until(deadline, kLongestSleep)), HSA_WAIT_STATE_BLOCKED);
    }
    return;
  }
  for (aql::Pause pause(deadline, kLongestPause); !over() && pause.wait();) {
  }
}

}  // namespace uptempo::detail
