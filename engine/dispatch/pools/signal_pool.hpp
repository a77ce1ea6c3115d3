// Completion and timing signals, made in set-up and used again and again.
//
// Interrupt signals (a waiter can sleep) and event-less ones (timestamps) are kept apart by what they really are, not by what was asked for:
// when the driver's events have run out ROCr hands out event-less signals without a word, and interrupts() tells how many are left.
//
// Thread safety: one owner. take() and give_back() neither allocate nor call HSA nor wait. A signal is given back when its packet
// has completed, armed when it is taken.
//
// Loans. Packets of other queues, and copies, may wait for a signal of the pool: they borrow it. A signal that is given back while it is on loan comes free when
// the last loan has ended, because armed again for another publication it would be waited for once more. Most signals are never lent, and those cost a test.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "aql/amd_abi.hpp"
#include "engine/dispatch/pools/pressure.hpp"
#include "engine/runtime/counters.hpp"
#include "engine/runtime/signal.hpp"

namespace uptempo {

// While one of these lives, its signal is not given out again, nor destroyed with its pool. Move-only; may be ended on any thread.
class SignalLoan {
 public:
  SignalLoan() = default;
  SignalLoan(SignalLoan&& other) noexcept = default;
  SignalLoan& operator=(SignalLoan&& other) noexcept {
    end();
    users_ = std::move(other.users_);
    return *this;
  }
  ~SignalLoan() { end(); }

 private:
  friend class SignalPool;
  explicit SignalLoan(std::shared_ptr<std::atomic<uint32_t>> users) noexcept : users_(std::move(users)) {
    users_->fetch_add(1, std::memory_order_relaxed);
  }
  void end() noexcept {
    // Release: the waiting packet has looked at the signal for the last time.
    if (users_) users_->fetch_sub(1, std::memory_order_release);
    users_.reset();
  }

  std::shared_ptr<std::atomic<uint32_t>> users_;  // how many loans there are of the signal
};

class SignalPool {
 public:
  // Creates the signals. Throws Error, also when the process's budget of interrupt signals (signal_budget.hpp) is used up.
  SignalPool(uint32_t interrupt, uint32_t event_less, const QueueMarks& marks = {});
  // Over signals that someone else owns, and which outlive the pool.
  explicit SignalPool(std::span<const hsa_signal_t> signals, const QueueMarks& marks = {});
  // Signals on loan are left to the session.
  ~SignalPool();
  SignalPool(const SignalPool&) = delete;
  SignalPool& operator=(const SignalPool&) = delete;

  // A signal of value 1; the null handle if none of the kind is free. A pool that got no interrupt signals at all serves such a request
  // with an event-less one: a wait for it polls instead of sleeping.
  hsa_signal_t take(SignalKind kind) noexcept;
  void give_back(hsa_signal_t signal) noexcept;
  // Whether the signal may be lent: it is on loan already, or enough others are not. A pool never lends its last quarter, and at least one signal, so that whoever
  // borrows, and for how long, there are some for its owner.
  bool may_lend(hsa_signal_t signal) noexcept;
  // Lends a signal that has been taken and not given back, and that may be lent.
  SignalLoan lend(hsa_signal_t signal) noexcept;
  // Signals that were given back, and are on loan.
  uint32_t on_loan() const noexcept;
  // Makes those free whose loans have ended since. take() does so itself; has() and free() only look.
  void sweep() noexcept;
  // Gives up all signals, which live on until the end of the Runtime: packets in flight may still use them. The pool is empty then.
  void leave_to_session() noexcept;

  uint32_t interrupts() const noexcept { return interrupts_; }
  uint32_t event_less() const noexcept { return event_less_; }
  bool has(SignalKind kind) const noexcept { return !serves(kind).free.empty(); }
  // Signals that take(kind) could give, and of how many.
  uint32_t free(SignalKind kind) const noexcept { return serves(kind).level().free(); }
  uint32_t size(SignalKind kind) const noexcept { return serves(kind).level().capacity; }
  Level level(SignalKind kind) const noexcept { return serves(kind).level(); }  // any thread

 private:
  // Signals of one kind.
  struct Kind {
    std::vector<hsa_signal_t> free;  // capacity for all, so that giving back never allocates
    detail::Gauge taken;

    Level level() const noexcept { return taken.level(); }
  };

  // A signal on loan, or one that was.
  struct Lent {
    hsa_signal_t signal{0};  // 0: the place is free
    bool given_back = false;
    std::atomic<uint32_t> users{0};
  };

  void put_free(hsa_signal_t signal) noexcept;
  bool keep_if_lent(hsa_signal_t signal) noexcept;
  void sort_in(hsa_signal_t signal);
  void start(const QueueMarks& marks);
  const Kind& serves(SignalKind kind) const noexcept {
    return kind == SignalKind::interrupt && interrupts_ != 0 ? interrupt_ : without_event_;
  }
  Kind& serves(SignalKind kind) noexcept {
    return const_cast<Kind&>(static_cast<const SignalPool&>(*this).serves(kind));
  }

  std::vector<Signal> owned_;
  Kind interrupt_, without_event_;
  std::shared_ptr<Lent[]> lent_;  // a place for each signal
  uint32_t lent_places_ = 0;      // used so far
  uint32_t interrupts_ = 0, event_less_ = 0;
};

inline hsa_signal_t SignalPool::take(SignalKind kind) noexcept {
  Kind& from = serves(kind);
  if (from.free.empty()) {
    sweep();
    if (from.free.empty()) return {0};
  }
  const hsa_signal_t signal = from.free.back();
  from.free.pop_back();
  from.taken.set(from.taken.in_use() + 1);
  aql::rearm(signal, 1);
  detail::count(&detail::CounterBlock::signals_pooled);
  return signal;
}

}  // namespace uptempo
