#include <uptempo/dispatch/pools/signal_pool.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <uptempo/aql/amd_abi.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo {
namespace {

void require_at_most(uint32_t most, uint32_t asked, const char* kind, const char* remedy) {
  if (asked <= most) return;
  throw Error({.code = ErrorCode::argument,
               .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "Queue",
               .asked = fmt::format("{} {} signals", asked, kind),
               .found = fmt::format("a queue has at most {}", most),
               .remedy = remedy});
}

}  // namespace

SignalPool::SignalPool(uint32_t interrupt, uint32_t event_less) {
  require_at_most(kMostInterrupt, interrupt, "interrupt",
                  "lower QueueOptions::publications, or CopyLimits::engine_copies for copies");
  require_at_most(kMostEventLess, event_less, "timing", "lower QueueOptions::timing_signals");
  const size_t total = size_t{interrupt} + event_less;
  owned_.reserve(total);
  interrupt_.free.reserve(total);
  without_event_.free.reserve(total);
  for (size_t i = 0; i < total; ++i) {
    sort_in(owned_.emplace_back(i < interrupt ? SignalKind::interrupt : SignalKind::event_less)
                .handle());
  }
  start();
}

SignalPool::SignalPool(std::span<const hsa_signal_t> signals) {
  interrupt_.free.reserve(signals.size());
  without_event_.free.reserve(signals.size());
  for (const hsa_signal_t signal : signals) sort_in(signal);
  start();
}

void SignalPool::sort_in(hsa_signal_t signal) {
  aql::rearm(signal, 1);
  if (aql::has_interrupt(signal)) {
    interrupt_.free.push_back(signal);
    ++interrupts_;
  } else {
    without_event_.free.push_back(signal);
    ++event_less_;
  }
}

void SignalPool::start() noexcept {
  interrupt_.taken.start(interrupts_);
  without_event_.taken.start(event_less_);
}

void SignalPool::leave_to_session() noexcept {
  for (Signal& signal : owned_) signal.leave_to_session();
  interrupt_.free.clear();
  without_event_.free.clear();
  interrupts_ = event_less_ = 0;
  start();
}

void SignalPool::leave_to_session(hsa_signal_t signal) noexcept {
  for (Signal& owned : owned_)
    if (owned.handle().handle == signal.handle) owned.leave_to_session();
}

void SignalPool::give_back(hsa_signal_t signal) noexcept {
  Kind& to = aql::has_interrupt(signal) ? interrupt_ : without_event_;
  aql::rearm(signal, 1);
  to.free.push_back(signal);
  to.taken.set(to.taken.in_use() - 1);
}

}  // namespace uptempo
