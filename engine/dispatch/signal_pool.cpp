#include "engine/dispatch/signal_pool.hpp"

#include "aql/amd_abi.hpp"
#include "engine/runtime/counters.hpp"

namespace uptempo {

SignalPool::SignalPool(uint32_t interrupt, uint32_t event_less) {
  const size_t total = size_t{interrupt} + event_less;
  owned_.reserve(total);
  free_interrupt_.reserve(total);
  free_event_less_.reserve(total);
  for (size_t i = 0; i < total; ++i) {
    sort_in(owned_.emplace_back(i < interrupt ? SignalKind::interrupt : SignalKind::event_less).handle());
  }
}

SignalPool::SignalPool(std::span<const hsa_signal_t> signals) {
  free_interrupt_.reserve(signals.size());
  free_event_less_.reserve(signals.size());
  for (const hsa_signal_t signal : signals) sort_in(signal);
}

void SignalPool::sort_in(hsa_signal_t signal) {
  if (aql::has_interrupt(signal)) {
    free_interrupt_.push_back(signal);
    ++interrupts_;
  } else {
    free_event_less_.push_back(signal);
    ++event_less_;
  }
}

hsa_signal_t SignalPool::take(SignalKind kind) noexcept {
  if (free(kind) == 0) return {0};
  auto& from = &serves(kind) == &free_interrupt_ ? free_interrupt_ : free_event_less_;
  const hsa_signal_t signal = from.back();
  from.pop_back();
  aql::rearm(signal, 1);
  detail::count(&detail::CounterBlock::signals_pooled);
  return signal;
}

void SignalPool::leave_to_session() noexcept {
  for (Signal& signal : owned_) signal.leave_to_session();
  free_interrupt_.clear();
  free_event_less_.clear();
  interrupts_ = event_less_ = 0;
}

void SignalPool::give_back(hsa_signal_t signal) noexcept {
  (aql::has_interrupt(signal) ? free_interrupt_ : free_event_less_).push_back(signal);
}

}  // namespace uptempo
