#include "engine/dispatch/pools/signal_pool.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "aql/amd_abi.hpp"
#include "engine/runtime/counters.hpp"
#include "engine/runtime/detail/handle_check.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo {
namespace {

void require_at_most(uint32_t most, uint32_t asked, const char* kind, const char* remedy) {
  if (asked <= most) return;
  throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "Queue",
               .asked = fmt::format("{} {} signals", asked, kind),
               .found = fmt::format("a queue has at most {}", most),
               .remedy = remedy});
}

}  // namespace

SignalPool::SignalPool(uint32_t interrupt, uint32_t event_less, const QueueMarks& marks) {
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
  start(marks);
}

SignalPool::SignalPool(std::span<const hsa_signal_t> signals, const QueueMarks& marks) {
  interrupt_.free.reserve(signals.size());
  without_event_.free.reserve(signals.size());
  for (const hsa_signal_t signal : signals) sort_in(signal);
  start(marks);
}

// Reads no signal: if the pool outlives the Runtime, their memory is gone.
SignalPool::~SignalPool() {
  for (const Lent& lent : std::span(lent_.get(), lent_places_)) {
    if (lent.signal.handle == 0 || lent.users.load(std::memory_order_acquire) == 0) continue;
    for (Signal& signal : owned_)
      if (signal.handle().handle == lent.signal.handle) signal.leave_to_session();
  }
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

void SignalPool::start(const QueueMarks& marks) {
  lent_ = std::shared_ptr<Lent[]>(new Lent[size_t{interrupts_} + event_less_]);
  interrupt_.taken.start(interrupts_, marks.signals);
  without_event_.taken.start(event_less_, interrupts_ != 0 ? marks.timing_signals : marks.signals);
}

void SignalPool::leave_to_session() noexcept {
  for (Signal& signal : owned_) signal.leave_to_session();
  interrupt_.free.clear();
  without_event_.free.clear();
  interrupts_ = event_less_ = 0;
  interrupt_.taken.start(0, {});
  without_event_.taken.start(0, {});
}

void SignalPool::give_back(hsa_signal_t signal) noexcept {
  if (lent_places_ != 0 && keep_if_lent(signal)) return;
  put_free(signal);
}

void SignalPool::put_free(hsa_signal_t signal) noexcept {
  Kind& to = aql::has_interrupt(signal) ? interrupt_ : without_event_;
  if constexpr (detail::kHandleChecks)
    if (std::ranges::any_of(to.free,
                            [&](hsa_signal_t free) { return free.handle == signal.handle; }))
      detail::end_with("a pooled signal was given back twice");
  aql::rearm(signal, 1);
  to.free.push_back(signal);
  to.taken.set(to.taken.in_use() - 1);
}

bool SignalPool::may_lend(hsa_signal_t signal) noexcept {
  sweep();
  uint32_t of_kind = 0;
  for (const Lent& lent : std::span(lent_.get(), lent_places_)) {
    if (lent.signal.handle == signal.handle) return true;
    of_kind +=
        lent.signal.handle != 0 && aql::has_interrupt(lent.signal) == aql::has_interrupt(signal);
  }
  const uint32_t all = aql::has_interrupt(signal) ? interrupts_ : event_less_;
  return of_kind + std::max(1u, all / 4) < all;
}

SignalLoan SignalPool::lend(hsa_signal_t signal) noexcept {
  sweep();
  const std::span places(lent_.get(), lent_places_);
  auto place =
      std::ranges::find(places, signal.handle, [](const Lent& lent) { return lent.signal.handle; });
  if (place == places.end())
    place = std::ranges::find(places, 0u, [](const Lent& lent) { return lent.signal.handle; });
  Lent& lent = place != places.end() ? *place : lent_[lent_places_++];
  lent.signal = signal;
  return SignalLoan({lent_, &lent.users});
}

bool SignalPool::keep_if_lent(hsa_signal_t signal) noexcept {
  sweep();
  for (Lent& lent : std::span(lent_.get(), lent_places_)) {
    if (lent.signal.handle != signal.handle) continue;
    lent.given_back = true;
    return true;
  }
  return false;
}

void SignalPool::sweep() noexcept {
  for (Lent& lent : std::span(lent_.get(), lent_places_)) {
    // Acquire: every borrower has read the signal for the last time before it is set to 1 again.
    if (lent.signal.handle == 0 || lent.users.load(std::memory_order_acquire) != 0) continue;
    const hsa_signal_t signal = std::exchange(lent.signal, {0});
    if (std::exchange(lent.given_back, false)) put_free(signal);
  }
  while (lent_places_ != 0 && lent_[lent_places_ - 1].signal.handle == 0) --lent_places_;
}

uint32_t SignalPool::on_loan() const noexcept {
  return static_cast<uint32_t>(
      std::ranges::count_if(std::span(lent_.get(), lent_places_), [](const Lent& lent) {
        return lent.given_back && lent.users.load(std::memory_order_relaxed) != 0;
      }));
}

}  // namespace uptempo
