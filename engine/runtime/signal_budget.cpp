#include "engine/runtime/signal_budget.hpp"

#include <atomic>

#include "engine/runtime/process_page.hpp"

namespace uptempo {
namespace {

// Relaxed throughout: no other data depends on these numbers.
constexpr auto kRelaxed = std::memory_order_relaxed;

// The numbers of the process. Copies of this library in other plugins use them, too, so the name of
// the page changes with the layout. Zero bytes are the begin.
struct Process {
  std::atomic<uint32_t> is_set;  // 0: the default budget
  std::atomic<uint32_t> limit, beyond;
  std::atomic<uint32_t> in_use, peak, copies;
  std::atomic<uint64_t> refused, replaced;
};
static_assert(sizeof(Process) <= detail::kProcessPageBytes &&
              std::atomic<uint32_t>::is_always_lock_free &&
              std::atomic<uint64_t>::is_always_lock_free);
constexpr const char* kPage = "uptempo-signal-budget-1";

// Counts this copy until it is unloaded.
class Copy {
 public:
  explicit Copy(Process& process) noexcept : process_(process) {
    process_.copies.fetch_add(1, kRelaxed);
  }
  ~Copy() { process_.copies.fetch_sub(1, kRelaxed); }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

 private:
  Process& process_;
};

Process& process() noexcept {
  static constinit Process own{};  // where the system grants no page
  static Process& found = []() -> Process& {
    void* const page = detail::process_page(kPage);
    return page == nullptr ? own : *static_cast<Process*>(page);
  }();
  static const Copy copy(found);
  return found;
}

}  // namespace

void set_signal_budget(const SignalBudget& budget) noexcept {
  Process& all = process();
  all.limit.store(budget.interrupts, kRelaxed);
  all.beyond.store(static_cast<uint32_t>(budget.beyond), kRelaxed);
  all.is_set.store(1, std::memory_order_release);  // after the two numbers
}

SignalBudget signal_budget() noexcept {
  const Process& all = process();
  if (all.is_set.load(std::memory_order_acquire) == 0) return {};
  return {.interrupts = all.limit.load(kRelaxed),
          .beyond = static_cast<SignalBudget::Beyond>(all.beyond.load(kRelaxed))};
}

SignalUse signal_use() noexcept {
  const Process& all = process();
  return {.budget = signal_budget().interrupts,
          .in_use = all.in_use.load(kRelaxed),
          .peak = all.peak.load(kRelaxed),
          .refused = all.refused.load(kRelaxed),
          .replaced = all.replaced.load(kRelaxed),
          .copies = all.copies.load(kRelaxed)};
}

namespace detail {

bool reserve_interrupt() noexcept {
  Process& all = process();
  uint32_t used = all.in_use.load(kRelaxed);
  do {
    if (used >= signal_budget().interrupts) return false;
  } while (!all.in_use.compare_exchange_weak(used, used + 1, kRelaxed));
  uint32_t most = all.peak.load(kRelaxed);
  while (most < used + 1 && !all.peak.compare_exchange_weak(most, used + 1, kRelaxed)) {
  }
  return true;
}

void release_interrupt() noexcept { process().in_use.fetch_sub(1, kRelaxed); }
void note_refused() noexcept { process().refused.fetch_add(1, kRelaxed); }
void note_replaced() noexcept { process().replaced.fetch_add(1, kRelaxed); }

}  // namespace detail
}  // namespace uptempo
