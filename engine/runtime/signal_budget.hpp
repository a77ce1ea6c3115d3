// SignalBudget limits the interrupt signals that this library may use in the process.
//
// Each interrupt signal takes an event of the kernel driver, which grants 4,095 to a process
// (KFD_SIGNAL_EVENT_LIMIT of linux/kfd_ioctl.h; slot 0 is unused). All users in the process share
// them: ROCr takes some for itself and about two per queue; HIP takes one per signal of its own.
// When none is left, ROCr silently returns signals that no thread can sleep on, to every user. The
// budget keeps this library from exhausting the events and reports when its limit is reached.
//
//   set_signal_budget({.interrupts = 512});
//   Queue queue{gpu};                        // 64 of them; throws Error if that exceeds 512
//   signal_use().in_use;
//
// The budget is one for the process, also where several plugins contain a copy of this library: the
// copies find their common numbers (process_page.hpp), and each may set the budget of all.
//
// ROCr keeps the events of destroyed signals for new ones and returns none before the Runtime ends.
// So `peak` is the number that other users of the process cannot use.
//
// Thread safety: every function may be called from any thread.
// Cost: one atomic operation per signal created or destroyed.
#pragma once

#include <cstdint>

namespace uptempo {

struct SignalBudget {
  // Action if an interrupt signal is requested but the budget is used up or the driver has no event
  // left.
  enum class Beyond : uint8_t {
    refuse,      // throw Error
    event_less,  // create a signal without an event: a blocked wait polls (signal_sleep.hpp)
  };
  uint32_t interrupts = 3584;  // leaves 511 to other users of the process
  Beyond beyond = Beyond::refuse;
};

struct SignalUse {
  uint32_t budget = 0;
  uint32_t in_use = 0;   // live interrupt signals of this library, in all its copies
  uint32_t peak = 0;     // highest in_use so far
  uint64_t refused = 0;  // Errors thrown since the process began
  // Signals without event created instead of interrupt signals, since the process began.
  uint64_t replaced = 0;
  uint32_t copies = 1;  // of this library in the process that have used or asked about signals
};

// Applies to signals created later. One budget for the process, shared by all Runtimes and by all
// copies of this library.
void set_signal_budget(const SignalBudget& budget) noexcept;
SignalBudget signal_budget() noexcept;
SignalUse signal_use() noexcept;

namespace detail {

// Reserves a place in the budget. Returns false if there is none.
bool reserve_interrupt() noexcept;
void release_interrupt() noexcept;
void note_refused() noexcept;
void note_replaced() noexcept;

}  // namespace detail
}  // namespace uptempo
