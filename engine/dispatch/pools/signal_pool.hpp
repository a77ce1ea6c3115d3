// SignalPool: completion and timing signals, created in set-up and reused.
//
// The pool sorts interrupt signals (a waiter can sleep) and event-less ones (timestamps) by what
// they are, not by what was requested. When the driver has no more events, ROCr returns event-less
// signals without an error; interrupts() returns the number of real interrupt signals.
//
// Thread safety: one owner. take() and give_back() do not allocate, wait or call HSA. The owner
// gives a signal back after its packet has completed. Free signals have the value 1: a signal is
// set when it becomes free, because its owner has then just read its cache line.
//
// Loans: packets of other queues, and copies, may borrow a signal of the pool to wait for it. A
// signal that is given back during a loan becomes free after its last loan has ended; otherwise a
// borrower could wait for its next use. Signals that were never lent cost one test.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "aql/amd_abi.hpp"
#include "engine/dispatch/pools/gauge.hpp"
#include "engine/dispatch/pools/pressure.hpp"
#include "engine/runtime/counters.hpp"
#include "engine/runtime/signal.hpp"

namespace uptempo {

class SignalPool {
 public:
  // The most signals of a kind. Creating so many takes up to a second.
  static constexpr uint32_t kMostInterrupt = 65'536, kMostEventLess = 1'048'576;

  // Creates the signals. Throws Error for more than the most, and if the process's budget of
  // interrupt signals (signal_budget.hpp) is exhausted.
  SignalPool(uint32_t interrupt, uint32_t event_less, const QueueMarks& marks = {});
  // Uses signals that the caller owns. They must outlive the pool.
  explicit SignalPool(std::span<const hsa_signal_t> signals, const QueueMarks& marks = {});
  // Signals on loan live until the end of the session.
  ~SignalPool();
  SignalPool(const SignalPool&) = delete;
  SignalPool& operator=(const SignalPool&) = delete;

  // Returns a signal of value 1, or the null handle if none of this kind is free. A pool without
  // any interrupt signals returns an event-less one instead: a wait for it polls instead of
  // sleeping.
  hsa_signal_t take(SignalKind kind) noexcept;
  void give_back(hsa_signal_t signal) noexcept;
  // True if the signal may be lent: it is on loan already, or enough others are not. A pool never
  // lends its last quarter, and at least one signal, so that its owner always has some.
  bool may_lend(hsa_signal_t signal) noexcept;
  // Lends a signal that is taken and for which may_lend() is true.
  SignalLoan lend(hsa_signal_t signal) noexcept;
  // Number of signals that were given back and are on loan.
  uint32_t on_loan() const noexcept;
  // Frees the signals whose loans have ended. take() calls it; has() and free() do not.
  void sweep() noexcept;
  // Empties the pool. All its signals live until the end of the Runtime, because packets in flight
  // may still use them.
  void leave_to_session() noexcept;

  uint32_t interrupts() const noexcept { return interrupts_; }
  uint32_t event_less() const noexcept { return event_less_; }
  bool has(SignalKind kind) const noexcept { return !serves(kind).free.empty(); }
  // Number of signals that take(kind) can return now, and in all.
  uint32_t free(SignalKind kind) const noexcept { return serves(kind).level().free(); }
  uint32_t size(SignalKind kind) const noexcept { return serves(kind).level().capacity; }
  Level level(SignalKind kind) const noexcept { return serves(kind).level(); }  // any thread

 private:
  // Signals of one kind.
  struct Kind {
    // capacity for all signals, so that give_back() never allocates
    std::vector<hsa_signal_t> free;
    detail::Gauge taken;

    Level level() const noexcept { return taken.level(); }
  };

  // A signal that is or was on loan.
  struct Lent {
    hsa_signal_t signal{0};  // 0: free place
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
  std::shared_ptr<Lent[]> lent_;  // one place per signal
  uint32_t lent_places_ = 0;      // places used so far
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
  detail::count(&detail::CounterBlock::signals_pooled);
  return signal;
}

}  // namespace uptempo
