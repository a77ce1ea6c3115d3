// Signal: owns one HSA signal.
//
// Every interrupt signal counts against the process's budget. SignalBudget decides whether
// construction throws Error once the budget is used up, or when ROCr 5.2.3 silently returns a
// signal without an event because the driver has none left. interrupt() reports which kind was
// created. A blocked HSA wait on an event-less signal spins.
//
// Memory: ROCr allocates every signal at the first CPU agent, which need not be the nearest one to
// the GPU, and offers no choice. Queue::describe() says where.
//
// Lifetime: batches and streams borrow the Signals that they are given. So a Signal
// may be destroyed at any time: the HSA signal lives until the last loan has ended, or the Runtime.
// Work that is given the bare handle borrows nothing.
//
// Thread safety: HSA signals may be used from any thread. The object is move-only with one owner.
// Cost: creation takes 10-50 us, because an interrupt signal may allocate a driver event, and a
// process has 4096. Create signals during set-up, or take them from a SignalPool.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include <uptempo/runtime/owned.hpp>

namespace uptempo {

enum class SignalKind : uint8_t {
  interrupt,   // a waiter can sleep
  event_less,  // no driver event: for timestamps and for dependencies between packets
};

// Limits the interrupt signals that this library may use in the process.
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
// copies find their common numbers, and each may set the budget of all.
//
// ROCr keeps the events of destroyed signals for new ones and returns none before the Runtime ends.
// So `peak` is the number that other users of the process cannot use.
//
// Thread safety: these functions may be called from any thread.
// Cost: one atomic operation per signal created or destroyed.
struct SignalBudget {
  uint32_t interrupts = 3584;  // leaves 511 to other users of the process
  // If the budget is used up or the driver has no event left: creates a signal without an event, on
  // which a blocked wait polls, instead of throwing Error.
  bool event_less_beyond = false;
};

struct SignalUse {
  uint32_t budget = 0;
  uint32_t in_use = 0;  // live interrupt signals of this library, in all its copies
  uint32_t peak = 0;    // highest in_use so far
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

// Longest sleep before deadlines and failures are checked again; also the highest cost of a lost
// interrupt.
inline constexpr std::chrono::nanoseconds kLongestSleep = std::chrono::milliseconds(250);

// Pauses between polls of an event-less signal double from the first to the longest, so completion
// is seen late by at most the time already waited. 250 polls per second at 10 to 20 us of CPU time
// each are below 1 % of a core. (Polling every millisecond took 2.3 %, measured on two busy cores.)
inline constexpr std::chrono::nanoseconds kFirstPause = std::chrono::microseconds(10);
inline constexpr std::chrono::nanoseconds kLongestPause = std::chrono::milliseconds(4);

// False where HSA_ENABLE_INTERRUPT=0 makes all of ROCr's signals event-less: not a shortage.
bool events_in_use() noexcept;

// Converts to system clock ticks, the unit of hsa_signal_wait_*.
uint64_t ticks_in(std::chrono::nanoseconds duration) noexcept;

}  // namespace detail

namespace detail {

struct SignalState {
  ~SignalState() {
    if (stays.load(std::memory_order_relaxed)) owned.leave_to_session();
  }
  Owned owned;
  std::atomic<bool> stays{false};  // work in flight may use the signal until the Runtime ends
};

// While a SignalLoan lives, its Signal is not destroyed. Move-only. Any thread may end it.
class SignalLoan {
 public:
  explicit SignalLoan(std::shared_ptr<SignalState> signal = {}) noexcept
      : signal_(std::move(signal)) {}
  SignalLoan(SignalLoan&&) noexcept = default;
  SignalLoan& operator=(SignalLoan&&) noexcept = default;

  explicit operator bool() const noexcept { return signal_ != nullptr; }
  // Drops the loan; the signal lives until the end of the Runtime, because work in flight may still
  // use it.
  void leave_to_session() noexcept {
    if (signal_) signal_->stays.store(true, std::memory_order_relaxed);
    signal_.reset();
  }

 private:
  std::shared_ptr<SignalState> signal_;
};

}  // namespace detail

class Signal {
 public:
  // Throws Error if HSA or the budget has no signal left.
  explicit Signal(SignalKind asked = SignalKind::interrupt, hsa_signal_value_t initial = 1);

  hsa_signal_t handle() const noexcept { return {state_ ? state_->owned.handle() : 0}; }
  // True if completion can wake a sleeping waiter.
  bool interrupt() const noexcept { return interrupt_; }
  bool alive() const noexcept { return state_ && state_->owned.alive(); }
  // Lends the signal; an empty Signal lends none.
  detail::SignalLoan lend() const noexcept { return detail::SignalLoan(state_); }
  // Drops ownership; the signal lives until the end of the Runtime, because work in flight may
  // still use it.
  void leave_to_session() noexcept { detail::SignalLoan(std::move(state_)).leave_to_session(); }

 private:
  std::shared_ptr<detail::SignalState> state_;  // the Signal's and its loans'
  bool interrupt_ = false;
};

}  // namespace uptempo
