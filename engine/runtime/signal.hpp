// Signal: owns one HSA signal.
//
// Every interrupt signal counts against the process's budget (signal_budget.hpp).
// SignalBudget::Beyond decides whether construction throws Error once the budget is used up, or
// when ROCr 5.2.3 silently returns a signal without an event because the driver has none left.
// interrupt() reports which kind was created. A blocked HSA wait on an event-less signal spins.
//
// Memory: ROCr allocates every signal at the first CPU agent, which need not be the nearest one to
// the GPU, and offers no choice. Queue::describe() says where.
//
// Lifetime: batches and streams borrow the Signals that they are given (SignalLoan). So a Signal
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

#include "engine/runtime/owned.hpp"

namespace uptempo {

enum class SignalKind : uint8_t {
  interrupt,   // a waiter can sleep
  event_less,  // no driver event: for timestamps and for dependencies between packets
};

namespace detail {

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

// While a SignalLoan lives, its Signal is not destroyed. Move-only. Any thread may end it.
class SignalLoan {
 public:
  SignalLoan() = default;  // of no signal
  SignalLoan(SignalLoan&& other) noexcept = default;
  SignalLoan& operator=(SignalLoan&& other) noexcept {
    end();
    users_ = std::move(other.users_);
    return *this;
  }
  ~SignalLoan() { end(); }

  explicit operator bool() const noexcept { return users_ != nullptr; }
  // Drops the loan; the signal lives until the end of the Runtime, because work in flight may still
  // use it.
  void leave_to_session() noexcept { users_.reset(); }

 private:
  friend class Signal;
  explicit SignalLoan(std::shared_ptr<std::atomic<uint32_t>> users) noexcept
      : users_(std::move(users)) {
    users_->fetch_add(1, std::memory_order_relaxed);
  }
  void end() noexcept {
    // Release: the waiting packet has read the signal for the last time.
    if (users_) users_->fetch_sub(1, std::memory_order_release);
    users_.reset();
  }

  std::shared_ptr<std::atomic<uint32_t>> users_;  // number of loans of the signal
};

class Signal {
 public:
  // Throws Error if HSA or the budget has no signal left.
  explicit Signal(SignalKind asked = SignalKind::interrupt, hsa_signal_value_t initial = 1);

  hsa_signal_t handle() const noexcept { return {state_ ? state_->owned.handle() : 0}; }
  // True if completion can wake a sleeping waiter.
  bool interrupt() const noexcept { return interrupt_; }
  bool alive() const noexcept { return state_ && state_->owned.alive(); }
  // Lends the signal; an empty Signal lends none.
  SignalLoan lend() const noexcept {
    return state_ ? SignalLoan({state_, &state_->users}) : SignalLoan();
  }
  // Drops ownership; the signal lives until the end of the Runtime, because work in flight may
  // still use it.
  void leave_to_session() noexcept {
    if (state_) state_->owned.leave_to_session();
    state_.reset();
  }

 private:
  struct State {
    ~State() {
      // A loan was left to the session.
      if (users.load(std::memory_order_acquire) != 0) owned.leave_to_session();
    }
    Owned owned;
    std::atomic<uint32_t> users{0};
  };
  std::shared_ptr<State> state_;  // the Signal's and its loans'
  bool interrupt_ = false;
};

}  // namespace uptempo
