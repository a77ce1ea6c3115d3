#include "cp/doorbell_watch.hpp"

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

#include "cp/device_thread.hpp"
#include "cp/store_instruction.hpp"
#include "device/clock.hpp"

// glibc's own name for sigaction: the interposed one would record our handler as the program's.
extern "C" int __sigaction(int signal_number, const struct sigaction* action,
                           struct sigaction* previous) noexcept;

namespace uptempo::vgpu {
namespace {

// What the handler knows. Process-wide because a handler has no other argument; written under registry_mutex, read without.
struct AttachedPage {
  std::atomic<std::uintptr_t> begin{0};  // 0: free
  std::atomic<std::size_t> size_bytes{0};
  std::atomic<const std::byte*> alias{nullptr};
  std::atomic<DoorbellWatch*> watch{nullptr};
  std::atomic<bool> write_protected{false};
};

std::array<AttachedPage, DoorbellWatch::kMaxPages> registry;
std::mutex registry_mutex;

// The action that other faults go to. A sequence lock's even/odd pair would do too; two slots and an index are simpler to read in a handler.
std::array<struct sigaction, 2> program_actions;
std::atomic<unsigned> program_action{0};
std::mutex program_action_mutex;
std::atomic<bool> installed{false};

std::atomic<std::uintptr_t> lost_host_memory{0};

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) noexcept {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation | FUTEX_PRIVATE_FLAG, value,
                 timeout, nullptr, 0);
}

void set_program_action(const struct sigaction& action) noexcept {  // program_action_mutex held
  const unsigned next = program_action.load(std::memory_order_relaxed) ^ 1u;
  program_actions[next] = action;
  program_action.store(next, std::memory_order_release);  // the handler reads a complete action
}

}  // namespace

// The handler's part of DoorbellWatch.
struct DoorbellFault {
  // Does what the store at the interrupted instruction would have done, through the alias. False: it is none that decode_store() knows.
  static bool carry_out(DoorbellWatch& watch, std::byte* alias, ucontext_t& context) noexcept {
    constexpr std::array<int, 16> kRegisters{REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                             REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                             REG_R12, REG_R13, REG_R14, REG_R15};
    auto& registers = context.uc_mcontext.gregs;
    const auto store = decode_store(reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]));
    if (!store || reinterpret_cast<std::uintptr_t>(alias) % sizeof(std::uint64_t) != 0) return false;
    auto& doorbell = *reinterpret_cast<std::uint64_t*>(alias);
    const auto value =
        static_cast<std::uint64_t>(store->immediate ? store->constant : registers[kRegisters[store->reg]]);
    if (watch.recording()) watch.note({&doorbell, value, host_clock_ns()});
    // seq_cst serves MOV and XCHG alike.
    const std::uint64_t before =
        std::atomic_ref<std::uint64_t>(doorbell).exchange(value, std::memory_order_seq_cst);
    if (store->exchanges) registers[kRegisters[store->reg]] = static_cast<greg_t>(before);
    registers[REG_RIP] += store->size_bytes;
    watch.wake();
    return true;
  }

  // True: the fault was a store to a protected doorbell page, which has been carried out or may now be executed again.
  static bool resolve(std::uintptr_t address, ucontext_t& context) noexcept {
    for (AttachedPage& page : registry) {
      const std::uintptr_t begin = page.begin.load(std::memory_order_acquire);
      if (begin == 0 || address < begin || address >= begin + page.size_bytes.load(std::memory_order_relaxed))
        continue;
      DoorbellWatch* const watch = page.watch.load(std::memory_order_acquire);
      auto* const alias = const_cast<std::byte*>(page.alias.load(std::memory_order_relaxed));
      if (watch != nullptr && carry_out(*watch, alias + (address - begin), context)) return true;
      // Another instruction: it is executed again, on a page that may be written.
      if (watch != nullptr) watch->recording_.store(false, std::memory_order_release);
      page.write_protected.store(false, std::memory_order_seq_cst);
      if (mprotect(reinterpret_cast<void*>(begin), page.size_bytes.load(std::memory_order_relaxed),
                   PROT_READ | PROT_WRITE) != 0)
        return false;
      // After mprotect: the sleeper may have armed anew in between, and that protection has just been undone.
      if (watch != nullptr) watch->wake();
      return true;
    }
    return false;
  }

  static void handle(int signal_number, siginfo_t* info, void* context) noexcept {
    const int saved = errno;
    const bool fault = info->si_code > 0;  // else sent by kill() or raise(): no address
    const bool resolved = fault && (resolve(reinterpret_cast<std::uintptr_t>(info->si_addr),
                                            *static_cast<ucontext_t*>(context)) ||
                                    (on_device_thread() && substitute(*info)));
    errno = saved;
    if (resolved) return;
    const struct sigaction& action = program_actions[program_action.load(std::memory_order_acquire)];
    if ((action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction != nullptr) {
      action.sa_sigaction(signal_number, info, context);
    } else if (action.sa_handler == SIG_IGN && !fault) {
      return;
    } else if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
      action.sa_handler(signal_number);
    } else {
      // Nobody handles it: without the handler the fault happens again and ends the process as it would have.
      struct sigaction standard {};
      standard.sa_handler = SIG_DFL;
      __sigaction(signal_number, &standard, nullptr);
      if (!fault) raise(signal_number);  // delivered when this handler returns
    }
  }

  // The device itself faulted: the program has unmapped memory that is still registered for the GPU. A page of zeros lets the access
  // go through, so that the command processor can report a GPU memory fault instead of the process dying.
  static bool substitute(const siginfo_t& info) noexcept {
    if (info.si_code != SEGV_MAPERR) return false;
    constexpr std::uintptr_t kPage = 4096;
    const auto address = reinterpret_cast<std::uintptr_t>(info.si_addr);
    void* const page = reinterpret_cast<void*>(address / kPage * kPage);
    if (mmap(page, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) !=
        page)
      return false;
    lost_host_memory.store(address, std::memory_order_release);
    return true;
  }

  static bool is_ours(const struct sigaction& action) noexcept {
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == &handle;
  }

  // Puts the handler in front of whatever is there.
  static void install() noexcept {
    struct sigaction current {};
    if (__sigaction(SIGSEGV, nullptr, &current) != 0 || is_ours(current)) return;
    const std::lock_guard lock(program_action_mutex);
    set_program_action(current);
    struct sigaction ours {};
    ours.sa_sigaction = &handle;
    // The program's handler may want to be entered again, run on its own stack, and see system calls restarted: allow what it may have asked for.
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | (current.sa_flags & SA_NODEFER);
    sigemptyset(&ours.sa_mask);
    __sigaction(SIGSEGV, &ours, nullptr);
    installed.store(true, std::memory_order_release);
  }
};

bool replace_program_segv_action(const struct sigaction* action, struct sigaction* previous) noexcept {
  if (!installed.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(program_action_mutex);
  const struct sigaction before = program_actions[program_action.load(std::memory_order_relaxed)];
  if (action != nullptr) set_program_action(*action);
  if (previous != nullptr) *previous = before;
  return true;
}

std::uintptr_t take_lost_host_memory() noexcept {
  if (lost_host_memory.load(std::memory_order_relaxed) == 0) return 0;
  return lost_host_memory.exchange(0, std::memory_order_acquire);
}

sigset_t block_all_but_segv(const sigset_t& mask) noexcept {
  sigset_t result = mask;
  sigdelset(&result, SIGSEGV);
  return result;
}

DoorbellWatch::DoorbellWatch() = default;

DoorbellWatch::~DoorbellWatch() {
  const std::lock_guard pages(pages_mutex_);
  const std::lock_guard lock(registry_mutex);
  for (AttachedPage& page : registry) {
    if (page.watch.load(std::memory_order_relaxed) != this) continue;
    if (page.write_protected.exchange(false))
      mprotect(reinterpret_cast<void*>(page.begin.load()), page.size_bytes.load(), PROT_READ | PROT_WRITE);
    page.begin.store(0, std::memory_order_release);
    page.watch.store(nullptr, std::memory_order_release);
  }
}

void DoorbellWatch::attach(std::byte* program_address, std::byte* alias, std::size_t size_bytes) {
  {
    const std::lock_guard pages(pages_mutex_);
    const std::lock_guard lock(registry_mutex);
    AttachedPage* free_page = nullptr;
    for (AttachedPage& page : registry)
      if (page.begin.load(std::memory_order_relaxed) == 0) free_page = &page;
    if (free_page == nullptr)
      throw std::runtime_error("cannot watch another doorbell mapping: " + std::to_string(kMaxPages) +
                               " are attached already");
    free_page->size_bytes.store(size_bytes, std::memory_order_relaxed);
    free_page->alias.store(alias, std::memory_order_relaxed);
    free_page->watch.store(this, std::memory_order_relaxed);
    free_page->write_protected.store(false, std::memory_order_relaxed);
    free_page->begin.store(reinterpret_cast<std::uintptr_t>(program_address),
                           std::memory_order_release);  // last: the handler reads it first
  }
  DoorbellFault::install();
  if (recording()) {
    // From its first doorbell on. Not by arm(): the processor may be asleep, and armed_ is what wakes it.
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
      if (page.begin.load() != reinterpret_cast<std::uintptr_t>(program_address) || page.watch.load() != this)
        continue;
      range = {page.alias.load(), page.size_bytes.load()};
      if (page.write_protected.exchange(false))
        mprotect(program_address, range.size_bytes, PROT_READ | PROT_WRITE);
      page.begin.store(0, std::memory_order_release);
      page.watch.store(nullptr, std::memory_order_release);
    }
  }
  wake();
  return range;
}

bool DoorbellWatch::watches(const void* alias_address) const noexcept {
  for (const AttachedPage& page : registry) {
    if (page.begin.load(std::memory_order_acquire) == 0 || page.watch.load(std::memory_order_relaxed) != this)
      continue;
    if (Range{page.alias.load(std::memory_order_relaxed), page.size_bytes.load(std::memory_order_relaxed)}
            .contains(alias_address))
      return true;
  }
  return false;
}

void DoorbellWatch::arm() {
  const std::lock_guard pages(pages_mutex_);
  armed_.store(1, std::memory_order_seq_cst);  // before the protection: a fault from here on wakes
  protect_pages();
}

void DoorbellWatch::protect_pages() {
  const auto attached_here = [this](const AttachedPage& page) {
    return page.watch.load(std::memory_order_relaxed) == this;
  };
  if (std::any_of(registry.begin(), registry.end(), attached_here))
    DoorbellFault::install();  // before the protection, too
  for (AttachedPage& page : registry) {
    if (!attached_here(page)) continue;
    page.write_protected.store(true, std::memory_order_seq_cst);
    mprotect(reinterpret_cast<void*>(page.begin.load(std::memory_order_relaxed)),
             page.size_bytes.load(std::memory_order_relaxed), PROT_READ);
  }
}

void DoorbellWatch::sleep(std::chrono::nanoseconds timeout) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  const timespec limit{static_cast<std::time_t>(seconds.count()),
                       static_cast<long>((timeout - seconds).count())};
  futex(armed_, FUTEX_WAIT, 1, timeout.count() == 0 ? nullptr : &limit);
}

void DoorbellWatch::disarm() {
  const std::lock_guard pages(pages_mutex_);
  armed_.store(0, std::memory_order_seq_cst);
  if (recording()) return;  // the pages stay as they are
  for (AttachedPage& page : registry) {
    if (page.watch.load(std::memory_order_relaxed) != this) continue;
    if (page.write_protected.exchange(false, std::memory_order_seq_cst))
      mprotect(reinterpret_cast<void*>(page.begin.load(std::memory_order_relaxed)),
               page.size_bytes.load(std::memory_order_relaxed), PROT_READ | PROT_WRITE);
  }
}

void DoorbellWatch::note(const Record& record) noexcept {
  const std::uint64_t index = noted_.fetch_add(1, std::memory_order_acq_rel);
  // Full: the processor is behind by kRecords doorbells; it never waits for the thread that rings.
  while (index - taken_.load(std::memory_order_acquire) >= kRecords) sched_yield();
  Slot& slot = records_[index % kRecords];
  slot.record = record;
  slot.filled.store(index + 1, std::memory_order_release);  // the record is complete
}

std::optional<DoorbellWatch::Record> DoorbellWatch::take_record() noexcept {
  const std::uint64_t index = taken_.load(std::memory_order_relaxed);  // only the processor's thread takes
  Slot& slot = records_[index % kRecords];
  if (slot.filled.load(std::memory_order_acquire) != index + 1) return std::nullopt;
  const Record record = slot.record;
  taken_.store(index + 1, std::memory_order_release);  // the slot may be used again
  return record;
}

void DoorbellWatch::wake() noexcept {
  if (armed_.exchange(0, std::memory_order_seq_cst) == 1) futex(armed_, FUTEX_WAKE, INT_MAX, nullptr);
}

}  // namespace uptempo::vgpu
