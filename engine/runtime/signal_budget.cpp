#include "engine/runtime/signal_budget.hpp"

#include <atomic>

namespace uptempo {
namespace {

// Relaxed throughout: no other data depends on these numbers.
constexpr auto kRelaxed = std::memory_order_relaxed;

std::atomic<uint32_t> limit{SignalBudget{}.interrupts};
std::atomic<SignalBudget::Beyond> beyond{SignalBudget{}.beyond};
std::atomic<uint32_t> in_use{0}, peak{0};
std::atomic<uint64_t> refused{0}, replaced{0};

}  // namespace

void set_signal_budget(const SignalBudget& budget) noexcept {
  limit.store(budget.interrupts, kRelaxed);
  beyond.store(budget.beyond, kRelaxed);
}

SignalBudget signal_budget() noexcept {
  return {.interrupts = limit.load(kRelaxed), .beyond = beyond.load(kRelaxed)};
}

SignalUse signal_use() noexcept {
  return {.budget = limit.load(kRelaxed),
          .in_use = in_use.load(kRelaxed),
          .peak = peak.load(kRelaxed),
          .refused = refused.load(kRelaxed),
          .replaced = replaced.load(kRelaxed)};
}

namespace detail {

bool reserve_interrupt() noexcept {
  uint32_t used = in_use.load(kRelaxed);
  do {
    if (used >= limit.load(kRelaxed)) return false;
  } while (!in_use.compare_exchange_weak(used, used + 1, kRelaxed));
  uint32_t most = peak.load(kRelaxed);
  while (most < used + 1 && !peak.compare_exchange_weak(most, used + 1, kRelaxed)) {
  }
  return true;
}

void release_interrupt() noexcept { in_use.fetch_sub(1, kRelaxed); }
void note_refused() noexcept { refused.fetch_add(1, kRelaxed); }
void note_replaced() noexcept { replaced.fetch_add(1, kRelaxed); }

}  // namespace detail
}  // namespace uptempo
