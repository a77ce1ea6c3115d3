// SignalPool: completion and timing signals, created in set-up and reused.
//
// The pool sorts interrupt signals (a waiter can sleep) and event-less ones (timestamps) by what
// they are, not by what was requested. When the driver has no more events, ROCr returns event-less
// signals without an error; interrupts() returns the number of real interrupt signals.
//
// Thread safety: one owner. take() and give_back() do not allocate, wait or call HSA. The owner
// gives a signal back after its packet has completed. Free signals have the value 1: a signal is
// set when it becomes free, because its owner has then just read its cache line.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <span>
#include <vector>

#include <uptempo/aql/amd_abi.hpp>
#include <uptempo/dispatch/pools/gauge.hpp>
#include <uptempo/dispatch/pools/pressure.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/signal.hpp>

namespace uptempo {

class SignalPool {
 public:
  // The most signals of a kind. Creating so many takes up to a second.
  static constexpr uint32_t kMostInterrupt = 65'536, kMostEventLess = 1'048'576;

  // Creates the signals. Throws Error for more than the most, and if the process's budget of
  // interrupt signals (signal.hpp) is exhausted.
  SignalPool(uint32_t interrupt, uint32_t event_less);
  // Uses signals that the caller owns. They must outlive the pool.
  explicit SignalPool(std::span<const hsa_signal_t> signals);
  SignalPool(const SignalPool&) = delete;
  SignalPool& operator=(const SignalPool&) = delete;

  // Returns a signal of value 1, or the null handle if none of this kind is free. A pool without
  // any interrupt signals returns an event-less one instead: a wait for it polls instead of
  // sleeping.
  hsa_signal_t take(SignalKind kind) noexcept;
  void give_back(hsa_signal_t signal) noexcept;
  // Empties the pool. All its signals live until the end of the Runtime, because packets in flight
  // may still use them.
  void leave_to_session() noexcept;
  // The same for one signal that is taken.
  void leave_to_session(hsa_signal_t signal) noexcept;

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

  void sort_in(hsa_signal_t signal);
  void start() noexcept;
  const Kind& serves(SignalKind kind) const noexcept {
    return kind == SignalKind::interrupt && interrupts_ != 0 ? interrupt_ : without_event_;
  }
  Kind& serves(SignalKind kind) noexcept {
    return const_cast<Kind&>(static_cast<const SignalPool&>(*this).serves(kind));
  }

  std::vector<Signal> owned_;
  Kind interrupt_, without_event_;
  uint32_t interrupts_ = 0, event_less_ = 0;
};

inline hsa_signal_t SignalPool::take(SignalKind kind) noexcept {
  Kind& from = serves(kind);
  if (from.free.empty()) return {0};
  const hsa_signal_t signal = from.free.back();
  from.free.pop_back();
  from.taken.set(from.taken.in_use() + 1);
  detail::count(&detail::CounterBlock::signals_pooled);
  return signal;
}

}  // namespace uptempo
