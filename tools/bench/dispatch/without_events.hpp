// While it exists, queues get signals without events. Rows wait actively, so only the driver's
// limit of 4,096 events tells the kinds apart, and rows share it with the peers.
//
// Thread safety: one owner; the budget is the process's.
#pragma once

#include <uptempo/runtime/signal.hpp>

namespace uptempo::bench {

class WithoutEvents {
 public:
  WithoutEvents() noexcept { set_signal_budget({.interrupts = 0, .event_less_beyond = true}); }
  ~WithoutEvents() { set_signal_budget(before_); }
  WithoutEvents(const WithoutEvents&) = delete;
  WithoutEvents& operator=(const WithoutEvents&) = delete;

 private:
  const SignalBudget before_ = signal_budget();
};

}  // namespace uptempo::bench
