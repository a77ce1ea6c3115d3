// Completion and timing signals, made in set-up and used again and again.
//
// Interrupt signals (a waiter can sleep) and event-less ones (timestamps) are kept apart by what they really are, not by what was asked for:
// when the driver's events have run out ROCr hands out event-less signals without a word, and interrupts() tells how many are left.
//
// Thread safety: one owner. take() and give_back() neither allocate nor call HSA nor wait. A signal is given back when its packet
// has completed, armed when it is taken.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <span>
#include <vector>

#include "engine/runtime/signal.hpp"

namespace uptempo {

class SignalPool {
 public:
  // Creates the signals. Throws Error.
  SignalPool(uint32_t interrupt, uint32_t event_less);
  // Over signals that someone else owns, and which outlive the pool.
  explicit SignalPool(std::span<const hsa_signal_t> signals);

  // A signal of value 1; the null handle if none of the kind is free. A pool that got no interrupt signals at all serves such a request
  // with an event-less one: a wait for it polls instead of sleeping.
  hsa_signal_t take(SignalKind kind) noexcept;
  void give_back(hsa_signal_t signal) noexcept;
  // Gives up all signals, which live on until the end of the Runtime: packets in flight may still use them. The pool is empty then.
  void leave_to_session() noexcept;

  uint32_t interrupts() const noexcept { return interrupts_; }
  uint32_t event_less() const noexcept { return event_less_; }
  // Signals that take(kind) could give.
  uint32_t free(SignalKind kind) const noexcept { return static_cast<uint32_t>(serves(kind).size()); }
  uint32_t size(SignalKind kind) const noexcept {
    return &serves(kind) == &free_interrupt_ ? interrupts_ : event_less_;
  }

 private:
  void sort_in(hsa_signal_t signal);
  const std::vector<hsa_signal_t>& serves(SignalKind kind) const noexcept {
    return kind == SignalKind::interrupt && interrupts_ != 0 ? free_interrupt_ : free_event_less_;
  }

  std::vector<Signal> owned_;
  std::vector<hsa_signal_t> free_interrupt_,
      free_event_less_;  // capacity for all, so that giving back never allocates
  uint32_t interrupts_ = 0, event_less_ = 0;
};

}  // namespace uptempo
