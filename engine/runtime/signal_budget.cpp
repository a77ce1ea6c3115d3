#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <uptempo/runtime/signal.hpp>

namespace uptempo {
namespace {

// Relaxed throughout: no other data depends on these numbers.
constexpr auto kRelaxed = std::memory_order_relaxed;

// The numbers of the process. Copies of this library in other plugins use them, too, so the name of
// the page changes with the layout. Zero bytes are the begin.
struct Numbers {
  std::atomic<uint32_t> is_set;  // 0: the default budget
  std::atomic<uint32_t> limit, beyond;
  std::atomic<uint32_t> in_use, peak, copies;
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

// The page is an anonymous mapping with a name in /proc/self/maps, by which later copies find it.
// This needs no exported symbol, no environment variable and no file. It ends with the process, and
// the child of a fork has a copy of its own.
constexpr const char* kPage = "uptempo-signal-budget-2";
constexpr std::string_view kMapping = " /memfd:uptempo-signal-budget-2 (deleted)\n";

// The system's calls without libc's functions, which tools interpose: they might take the lock that
// the caller holds.
void* find_page() noexcept {
  const long file = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  std::array<char, 8192> buffer;
  size_t held = 0;  // bytes in the buffer, from the begin of a line on
  uintptr_t address = 0;
  for (long got = 0; address == 0; held += static_cast<size_t>(got)) {
    std::string_view text(buffer.data(), held);
    if (const size_t at = text.find(kMapping); at != std::string_view::npos) {
      const size_t line = text.rfind('\n', at) + 1;  // npos + 1 is 0
      std::from_chars(text.data() + line, text.data() + at, address, 16);
    }
    text.remove_prefix(text.rfind('\n') + 1);
    held = text.size() == buffer.size() ? 0 : text.size();  // no line of ours is that long
    std::memmove(buffer.data(), text.data(), held);
    got = syscall(SYS_read, file, buffer.data() + held, buffer.size() - held);
    if (got <= 0) break;
  }
  syscall(SYS_close, file);
  return reinterpret_cast<void*>(address);
}

void* make_page() noexcept {
  const long file = syscall(SYS_memfd_create, kPage, MFD_CLOEXEC);
  if (file < 0) return nullptr;
  long address = 0;
  // Private: the child of a fork must not change the parent's numbers.
  if (syscall(SYS_ftruncate, file, sizeof(Numbers)) == 0)
    address =
        syscall(SYS_mmap, nullptr, sizeof(Numbers), PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0L);
  syscall(SYS_close, file);
  return address > 0 ? reinterpret_cast<void*>(address) : nullptr;
}

// The numbers' page, with zero bytes at first. Null if the system grants none. Never unmapped.
void* process_page() noexcept {
  void* page = nullptr;
  // The loader's lock is the one that all copies of this library have in common.
  dl_iterate_phdr(
      [](dl_phdr_info*, size_t, void* result) {
        void*& found = *static_cast<void**>(result);
        found = find_page();
        if (found == nullptr) found = make_page();
        return 1;  // once, not for each object
      },
      &page);
  return page;
}

Numbers& numbers() noexcept {
  static constinit Numbers own{};  // where the system grants no page
  static Numbers& found = []() -> Numbers& {
    void* const page = process_page();
    return page == nullptr ? own : *static_cast<Numbers*>(page);
  }();
  static const struct Copy {  // counts this copy until it is unloaded
    Copy() noexcept { found.copies.fetch_add(1, kRelaxed); }
    ~Copy() { found.copies.fetch_sub(1, kRelaxed); }
  } copy;
  return found;
}

}  // namespace

void set_signal_budget(const SignalBudget& budget) noexcept {
  Numbers& all = numbers();
  all.limit.store(budget.interrupts, kRelaxed);
  all.beyond.store(budget.event_less_beyond, kRelaxed);
  all.is_set.store(1, std::memory_order_release);  // after the two numbers
}

SignalBudget signal_budget() noexcept {
  const Numbers& all = numbers();
  if (all.is_set.load(std::memory_order_acquire) == 0) return {};
  return {.interrupts = all.limit.load(kRelaxed),
          .event_less_beyond = all.beyond.load(kRelaxed) != 0};
}

SignalUse signal_use() noexcept {
  const Numbers& all = numbers();
  return {.budget = signal_budget().interrupts,
          .in_use = all.in_use.load(kRelaxed),
          .peak = all.peak.load(kRelaxed),
          .copies = all.copies.load(kRelaxed)};
}

namespace detail {

bool reserve_interrupt() noexcept {
  Numbers& all = numbers();
  uint32_t used = all.in_use.load(kRelaxed);
  do {
    if (used >= signal_budget().interrupts) return false;
  } while (!all.in_use.compare_exchange_weak(used, used + 1, kRelaxed));
  uint32_t most = all.peak.load(kRelaxed);
  while (most < used + 1 && !all.peak.compare_exchange_weak(most, used + 1, kRelaxed)) {
  }
  return true;
}

void release_interrupt() noexcept { numbers().in_use.fetch_sub(1, kRelaxed); }

}  // namespace detail
}  // namespace uptempo
