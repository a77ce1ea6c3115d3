#include "cp/doorbell/doorbell_watch.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <cerrno>

#include <algorithm>
#include <array>
#include <climits>
#include <ctime>
#include <stdexcept>
#include <string>

#include "cp/doorbell/store_instruction.hpp"
#include "device/clock.hpp"
#include "device/fault_chain.hpp"
#include "device/host/interrupted_registers.hpp"
#include "device/host/interrupted_stack.hpp"

namespace uptempo::vgpu {
namespace {

// State of the handler. Process-wide, because a handler receives no other argument. Written under
// registry_mutex, read without it.
struct AttachedPage {
  std::atomic<uintptr_t> begin{0};  // 0: free
  std::atomic<size_t> size_bytes{0};
  std::atomic<const std::byte*> alias{nullptr};
  std::atomic<DoorbellWatch*> watch{nullptr};
  std::atomic<bool> write_protected{false};
  bool by_userfault = false;  // not by mprotect(). Under the watch's pages_mutex_
};

std::array<AttachedPage, DoorbellWatch::kMaxPages> registry;
std::mutex registry_mutex;

long futex(std::atomic<uint32_t>& word, int operation, uint32_t value,
           const timespec* timeout) noexcept {
  static_assert(sizeof(word) == sizeof(uint32_t));
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation | FUTEX_PRIVATE_FLAG,
                 value, timeout, nullptr, 0);
}

void open_page(Userfaults& userfaults, const AttachedPage& page) noexcept {
  auto* const begin = reinterpret_cast<std::byte*>(page.begin.load(std::memory_order_relaxed));
  const size_t size_bytes = page.size_bytes.load(std::memory_order_relaxed);
  if (page.by_userfault) {
    userfaults.open(begin, size_bytes);
  } else {
    mprotect(begin, size_bytes, PROT_READ | PROT_WRITE);
  }
}

}  // namespace

// The part of DoorbellWatch that runs in the fault handler.
struct DoorbellFault {
  // Performs the interrupted store through the alias. Returns false if decode_store() does not
  // recognise the instruction.
  static bool carry_out(DoorbellWatch& watch, std::byte* alias, ucontext_t& context) noexcept {
    auto& registers = context.uc_mcontext.gregs;
    const auto store = decode_store(reinterpret_cast<const uint8_t*>(registers[REG_RIP]));
    if (!store || reinterpret_cast<uintptr_t>(alias) % sizeof(uint64_t) != 0) return false;
    auto& doorbell = *reinterpret_cast<uint64_t*>(alias);
    const auto value = static_cast<uint64_t>(store->immediate ? store->constant
                                                              : registers[kRegisters[store->reg]]);
    if (watch.recording()) {
      const HostStackId stack =
          watch.stacks_ == nullptr
              ? 0
              : capture_interrupted(*watch.stacks_,
                                    reinterpret_cast<const void*>(registers[REG_RIP]),
                                    reinterpret_cast<const void*>(registers[REG_RSP]));
      watch.note({&doorbell, value, host_clock_ns(), {stack, calling_stream()}});
    }
    // seq_cst is correct for both MOV and XCHG.
    const uint64_t before =
        std::atomic_ref<uint64_t>(doorbell).exchange(value, std::memory_order_seq_cst);
    if (store->exchanges) registers[kRegisters[store->reg]] = static_cast<greg_t>(before);
    registers[REG_RIP] += store->size_bytes;
    const bool holds = watch.unheld_.load(std::memory_order_acquire) != nullptr;
    // before the wake-up: the device must not rest without this doorbell
    const uint32_t ring = holds ? watch.count_ring() : 0;
    watch.wake();
    if (holds) watch.hold(ring);
    return true;
  }

  // Returns true if the fault was a store to a protected doorbell page. The store has then taken
  // effect or can be executed again.
  static bool resolve(uintptr_t address, ucontext_t& context) noexcept {
    for (AttachedPage& page : registry) {
      const uintptr_t begin = page.begin.load(std::memory_order_acquire);
      if (begin == 0 || address < begin ||
          address >= begin + page.size_bytes.load(std::memory_order_relaxed))
        continue;
      DoorbellWatch* const watch = page.watch.load(std::memory_order_acquire);
      auto* const alias = const_cast<std::byte*>(page.alias.load(std::memory_order_relaxed));
      const bool alias_is_writable = reinterpret_cast<uintptr_t>(alias) != begin;
      if (watch != nullptr && alias_is_writable &&
          carry_out(*watch, alias + (address - begin), context))
        return true;
      // Any other instruction executes again on a page that is now writable.
      if (watch != nullptr) {
        watch->recording_.store(false, std::memory_order_release);
        if (auto* const unheld = watch->unheld_.load(std::memory_order_acquire))
          unheld->fetch_add(1, std::memory_order_relaxed);
      }
      page.write_protected.store(false, std::memory_order_seq_cst);
      if (mprotect(reinterpret_cast<void*>(begin), page.size_bytes.load(std::memory_order_relaxed),
                   PROT_READ | PROT_WRITE) != 0)
        return false;
      // After mprotect(), because the sleeper may have armed again in between and mprotect() has
      // undone that protection.
      if (watch != nullptr) watch->wake();
      return true;
    }
    return false;
  }

  static bool settle(int signal_number, const siginfo_t& info, ucontext_t& context) noexcept {
    return signal_number == SIGSEGV && resolve(reinterpret_cast<uintptr_t>(info.si_addr), context);
  }
};

DoorbellWatch::DoorbellWatch() = default;

DoorbellWatch::~DoorbellWatch() {
  const std::lock_guard pages(pages_mutex_);
  const std::lock_guard lock(registry_mutex);
  for (AttachedPage& page : registry) {
    if (page.watch.load(std::memory_order_relaxed) != this) continue;
    if (page.write_protected.exchange(false)) open_page(userfaults_, page);
    page.begin.store(0, std::memory_order_release);
    page.watch.store(nullptr, std::memory_order_release);
  }
}

void DoorbellWatch::attach(std::byte* program_address, std::byte* alias, size_t size_bytes) {
  {
    const std::lock_guard pages(pages_mutex_);
    const std::lock_guard lock(registry_mutex);
    AttachedPage* free_page = nullptr;
    for (AttachedPage& page : registry)
      if (page.begin.load(std::memory_order_relaxed) == 0) free_page = &page;
    if (free_page == nullptr)
      throw std::runtime_error("cannot watch another doorbell mapping: " +
                               std::to_string(kMaxPages) + " are already attached");
    free_page->size_bytes.store(size_bytes, std::memory_order_relaxed);
    free_page->alias.store(alias, std::memory_order_relaxed);
    free_page->watch.store(this, std::memory_order_relaxed);
    free_page->write_protected.store(false, std::memory_order_relaxed);
    free_page->begin.store(reinterpret_cast<uintptr_t>(program_address),
                           std::memory_order_release);  // last: the handler reads it first
  }
  install_fault_chain(FaultRank::doorbell, &DoorbellFault::settle);
  if (recording()) {
    // Protects the page now, so that its first doorbell is recorded. arm() cannot do it: the
    // processor may be asleep, and armed_ wakes it.
    const std::lock_guard pages(pages_mutex_);
    protect_pages();
  }
  wake();
}

DoorbellWatch::Range DoorbellWatch::detach(std::byte* program_address) {
  Range range;
  {
    const std::lock_guard pages(pages_mutex_);
    const std::lock_guard lock(registry_mutex);
    for (AttachedPage& page : registry) {
      if (page.begin.load() != reinterpret_cast<uintptr_t>(program_address) ||
          page.watch.load() != this)
        continue;
      range = {page.alias.load(), page.size_bytes.load()};
      if (page.write_protected.exchange(false)) open_page(userfaults_, page);
      userfaults_.forget(program_address, range.size_bytes);
      page.begin.store(0, std::memory_order_release);
      page.watch.store(nullptr, std::memory_order_release);
    }
  }
  wake();
  return range;
}

bool DoorbellWatch::watches(const void* alias_address) const noexcept {
  for (const AttachedPage& page : registry) {
    if (page.begin.load(std::memory_order_acquire) == 0 ||
        page.watch.load(std::memory_order_relaxed) != this)
      continue;
    if (Range{page.alias.load(std::memory_order_relaxed),
              page.size_bytes.load(std::memory_order_relaxed)}
            .contains(alias_address))
      return true;
  }
  return false;
}

void DoorbellWatch::arm() {
  const std::lock_guard pages(pages_mutex_);
  // before the protection, so that every later fault wakes
  armed_.store(1, std::memory_order_seq_cst);
  if (!awaits_store()) protect_pages();
}

void DoorbellWatch::protect_pages() {
  const auto attached_here = [this](const AttachedPage& page) {
    return page.watch.load(std::memory_order_relaxed) == this;
  };
  if (std::any_of(registry.begin(), registry.end(), attached_here))
    install_fault_chain(FaultRank::doorbell, &DoorbellFault::settle);  // also before the protection
  for (AttachedPage& page : registry) {
    if (!attached_here(page)) continue;
    auto* const begin = reinterpret_cast<std::byte*>(page.begin.load(std::memory_order_relaxed));
    const size_t size_bytes = page.size_bytes.load(std::memory_order_relaxed);
    // The end of a recording leaves pages closed by mprotect() until disarm().
    const bool closed =
        page.write_protected.exchange(true, std::memory_order_seq_cst) && !page.by_userfault;
    // Recording needs the registers of the thread that stores.
    page.by_userfault = !recording() && !closed && userfaults_.protect(begin, size_bytes);
    if (!page.by_userfault) mprotect(begin, size_bytes, PROT_READ);
  }
}

void DoorbellWatch::open_pages() {
  for (AttachedPage& page : registry)
    if (page.watch.load(std::memory_order_relaxed) == this &&
        page.write_protected.exchange(false, std::memory_order_seq_cst))
      open_page(userfaults_, page);
}

void DoorbellWatch::let_through() {
  if (!userfaults_.take_stopped()) return;
  awaited_until_ns_ = host_clock_ns() + kStoreLimitNs;
  open_pages();
}

bool DoorbellWatch::awaits_store() const noexcept {
  return awaited_until_ns_ != 0 && host_clock_ns() < awaited_until_ns_;
}

void DoorbellWatch::sleep(std::chrono::nanoseconds timeout) {
  if (!userfaults_.available()) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
    const timespec limit{static_cast<std::time_t>(seconds.count()),
                         static_cast<long>((timeout - seconds).count())};
    futex(armed_, FUTEX_WAIT, 1, timeout.count() == 0 ? nullptr : &limit);
    return;
  }
  // wake() after this load ends the wait.
  if (armed_.load(std::memory_order_seq_cst) == 1) userfaults_.wait(timeout);
  const std::lock_guard pages(pages_mutex_);
  let_through();
}

void DoorbellWatch::disarm() {
  const std::lock_guard pages(pages_mutex_);
  armed_.store(0, std::memory_order_seq_cst);
  if (recording()) return;  // recording keeps the pages protected
  let_through();
  open_pages();
}

void DoorbellWatch::hold_producers(std::atomic<uint64_t>& unheld) noexcept {
  unheld_.store(&unheld, std::memory_order_release);
}

uint32_t DoorbellWatch::count_ring() noexcept {
  return rings_.fetch_add(1, std::memory_order_seq_cst) + 1;
}

void DoorbellWatch::hold_until_rest() noexcept {
  if (unheld_.load(std::memory_order_acquire) == nullptr) return;
  const uint32_t ring = count_ring();
  wake();
  hold(ring);
}

// Progress extends the limit. A kernel that waits for the host makes none. The limit counts looks,
// not time, because the machine may stop both threads, or the processor's alone.
void DoorbellWatch::hold(uint32_t ring) noexcept {
  constexpr timespec kLook{0, 50'000'000};
  constexpr unsigned kLooks = kHoldLimit / std::chrono::nanoseconds(kLook.tv_nsec);
  constexpr unsigned kLooksAtNothing =
      std::chrono::seconds(60) / std::chrono::nanoseconds(kLook.tv_nsec);
  uint32_t passes = passes_.load(std::memory_order_relaxed);
  uint32_t beats = beats_.load(std::memory_order_relaxed);
  unsigned looks = 0, looks_at_nothing = 0;
  for (;;) {
    // acquire: what the device has done happens before the thread continues
    const uint32_t rested = rested_.load(std::memory_order_acquire);
    if (static_cast<int32_t>(rested - ring) >= 0) return;
    auto* const unheld = unheld_.load(std::memory_order_acquire);
    if (unheld == nullptr) return;
    if (restless_.load(std::memory_order_acquire)) {
      unheld->fetch_add(1, std::memory_order_relaxed);
      return;
    }
    const bool in_full = futex(rested_, FUTEX_WAIT, rested, &kLook) != 0 && errno == ETIMEDOUT;
    const uint32_t passed = passes_.load(std::memory_order_relaxed);
    if (const uint32_t beaten = beats_.load(std::memory_order_relaxed); beaten != beats) {
      beats = beaten;
      looks = looks_at_nothing = 0;
    } else if (in_full && passed != passes) {
      ++looks;
    } else if (in_full) {
      ++looks_at_nothing;
    }
    passes = passed;
    if (looks >= kLooks || looks_at_nothing >= kLooksAtNothing)
      restless_.store(true, std::memory_order_release);
  }
}

void DoorbellWatch::rested(uint32_t rings) noexcept {
  // relaxed: only the processor's thread stores it
  if (rested_.load(std::memory_order_relaxed) == rings) return;
  restless_.store(false, std::memory_order_release);
  rested_.store(rings, std::memory_order_release);
  futex(rested_, FUTEX_WAKE, INT_MAX, nullptr);
}

void DoorbellWatch::release_producers() noexcept {
  unheld_.store(nullptr, std::memory_order_release);
  futex(rested_, FUTEX_WAKE, INT_MAX, nullptr);
}

void DoorbellWatch::note(const Record& record) noexcept {
  const uint64_t index = noted_.fetch_add(1, std::memory_order_acq_rel);
  // The buffer is full: the processor has kRecords doorbells to read. It never waits for the thread
  // that rings.
  while (index - taken_.load(std::memory_order_acquire) >= kRecords) sched_yield();
  Slot& slot = records_[index % kRecords];
  slot.record = record;
  slot.filled.store(index + 1, std::memory_order_release);  // release: the record is complete
}

std::optional<DoorbellWatch::Record> DoorbellWatch::take_record() noexcept {
  // relaxed: only the processor's thread takes records
  const uint64_t index = taken_.load(std::memory_order_relaxed);
  Slot& slot = records_[index % kRecords];
  if (slot.filled.load(std::memory_order_acquire) != index + 1) return std::nullopt;
  const Record record = slot.record;
  taken_.store(index + 1, std::memory_order_release);  // release: the slot is free
  return record;
}

void DoorbellWatch::wake() noexcept {
  if (armed_.exchange(0, std::memory_order_seq_cst) != 1) return;
  if (userfaults_.available()) {
    userfaults_.interrupt();
  } else {
    futex(armed_, FUTEX_WAKE, INT_MAX, nullptr);
  }
}

void DoorbellWatch::wake_all() noexcept {
  for (const AttachedPage& page : registry)
    if (DoorbellWatch* const watch = page.watch.load(std::memory_order_acquire); watch != nullptr)
      watch->wake();
}

}  // namespace uptempo::vgpu
