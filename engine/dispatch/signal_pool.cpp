#include "engine/dispatch/signal_pool.hpp"

#include <algorithm>

#include "aql/amd_abi.hpp"
#include "engine/dispatch/handle_check.hpp"
#include "engine/runtime/counters.hpp"

namespace uptempo {

SignalPool::SignalPool(uint32_t interrupt, uint32_t event_less, const QueueMarks& marks) {
  const size_t total = size_t{interrupt} + event_less;
  owned_.reserve(total);
  interrupt_.free.reserve(total);
  without_event_.free.reserve(total);
  for (size_t i = 0; i < total; ++i) {
    sort_in(owned_.emplace_back(i < interrupt ? SignalKind::interrupt : SignalKind::event_less).handle());
  }
  start(marks);
}

SignalPool::SignalPool(std::span<const hsa_signal_t> signals, const QueueMarks& marks) {
  interrupt_.free.reserve(signals.size());
  without_event_.free.reserve(signals.size());
  for (const hsa_signal_t signal : signals) sort_in(signal);
  start(marks);
}

void SignalPool::sort_in(hsa_signal_t signal) {
  if (aql::has_interrupt(signal)) {
    interrupt_.free.push_back(signal);
    ++interrupts_;
  } else {
    without_event_.free.push_back(signal);
    ++event_less_;
  }
}

void SignalPool::start(const QueueMarks& marks) noexcept {
  interrupt_.taken.start(interrupts_, marks.signals);
  without_event_.taken.start(event_less_, interrupts_ != 0 ? marks.timing_signals : marks.signals);
}

void SignalPool::leave_to_session() noexcept {
  for (Signal& signal : owned_) signal.leave_to_session();
  interrupt_.free.clear();
  without_event_.free.clear();
  interrupts_ = event_less_ = 0;
  start({});
}

void SignalPool::give_back(hsa_signal_t signal) noexcept {
  Kind& to = aql::has_interrupt(signal) ? interrupt_ : without_event_;
  if constexpr (detail::handle_checks)
    if (std::ranges::any_of(to.free, [&](hsa_signal_t free) { return free.handle == signal.handle; }))
      detail::end_with("a pooled signal was given back twice");
  to.free.push_back(signal);
  to.taken.set(to.taken.in_use() - 1);
}

}  // namespace uptempo
