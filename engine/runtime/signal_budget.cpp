#include "engine/runtime/signal_budget.hpp"

#include <atomic>

namespace uptempo {
namespace {

// Relaxed throughout: no other data depends on these numbers.
constexpr auto relaxed = std::memory_order_relaxed;

std::atomic<uint32_t> limit{SignalBudget{}.interrupts};
std::atomic<SignalBudget::Beyond> beyond{SignalBudget{}.beyond};
std::atomic<uint32_t> in_use{0}, peak{0};
std::atomic<uint64_t> refused{0}, replaced{0};

}  // namespace

void set_signal_budget(const SignalBudget& budget) noexcept {
  limit.store(budget.interrupts, relaxed);
  beyond.store(budget.beyond, relaxed);
}

SignalBudget signal_budget() noexcept {
  return {.interrupts = limit.load(relaxed), .beyond = beyond.load(relaxed)};
}

SignalUse signal_use() noexcept {
  return {.budget = limit.load(relaxed),
          .in_use = in_use.load(relaxed),
          .peak = peak.load(relaxed),
          .refused = refused.load(relaxed),
          .replaced = replaced.load(relaxed)};
}

namespace detail {

bool reserve_interrupt() noexcept {
  uint32_t used = in_use.load(relaxed);
  do {
    if (used >= limit.load(relaxed)) return false;
  } while (!in_use.compare_exchange_weak(used, used + 1, relaxed));
  uint32_t most = peak.load(relaxed);
  while (most < used + 1 && !peak.compare_exchange_weak(most, used + 1, relaxed)) {
  }
  return true;
}

void release_interrupt() noexcept { in_use.fetch_sub(1, relaxed); }
void note_refused() noexcept { refused.fetch_add(1, relaxed); }
void note_replaced() noexcept { replaced.fetch_add(1, relaxed); }

}  // namespace detail
}  // namespace uptempo
