// How many interrupt signals this library may have in the process, and how many it has.
//
// Each takes an event of the kernel driver, which gives 4,095 to a process (KFD_SIGNAL_EVENT_LIMIT of linux/kfd_ioctl.h; slot 0 is unused), to
// everybody in it: ROCr takes some for itself and about two for each queue, HIP one for each of its own signals. When they have run out
// ROCr hands out signals that nobody can sleep on, without a word, and so it does to everybody else. A budget keeps this
// library from being the one that takes them all, and says so where it ends.
//
//   set_signal_budget({.interrupts = 512});
//   Queue queue{gpu};                        // 64 of them; throws Error when that would be more than 512
//   signal_use().in_use;
//
// Events are not given back to the driver before the Runtime ends: ROCr keeps those of destroyed signals for its next ones. So what counts for
// the others of the process is `peak`.
//
// Thread safety: all functions from any thread. Cost: an atomic operation for each signal made or destroyed.
#pragma once

#include <cstdint>

namespace uptempo {

struct SignalBudget {
  // What to do when an interrupt signal is asked for and the budget is used up, or the driver has no event left.
  enum class Beyond : uint8_t {
    refuse,      // Error
    event_less,  // a signal without event: a blocked wait for it polls (timeline.hpp)
  };
  uint32_t interrupts = 3584;  // leaves 511 to the others of the process
  Beyond beyond = Beyond::refuse;
};

struct SignalUse {
  uint32_t budget = 0;
  uint32_t in_use = 0;    // interrupt signals of this library alive
  uint32_t peak = 0;      // most of them at a time
  uint64_t refused = 0;   // Errors thrown, since the process began
  uint64_t replaced = 0;  // signals without event in place of interrupt signals, since the process began
};

// For signals made later; those there are stay. One budget for the process, whatever Runtime they belong to.
void set_signal_budget(const SignalBudget& budget) noexcept;
SignalBudget signal_budget() noexcept;
SignalUse signal_use() noexcept;

namespace detail {

// An interrupt signal's place in the budget: false if there is none.
bool reserve_interrupt() noexcept;
void release_interrupt() noexcept;
void note_refused() noexcept;
void note_replaced() noexcept;

}  // namespace detail
}  // namespace uptempo
