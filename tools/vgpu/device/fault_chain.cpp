#include "device/fault_chain.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

// glibc's own name of sigaction(). The interposed one would record our handler as the program's.
extern "C" int __sigaction(int signal_number, const struct sigaction* action,
                           struct sigaction* previous) noexcept;

namespace uptempo::vgpu {
namespace {

using KernelMask = uint64_t;  // 64 signals; sigset_t is larger, but not in a signal frame

constexpr KernelMask bit(int signal_number) { return KernelMask{1} << (signal_number - 1); }

KernelMask first_64(const sigset_t& mask) {
  KernelMask result;
  std::memcpy(&result, &mask, sizeof result);
  return result;
}

// Raw call, because the interposed function removes SIGSEGV from masks.
KernelMask set_mask(KernelMask mask) noexcept {
  KernelMask before = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &before, sizeof mask);
  return before;
}

// The action that the program has set. Two slots, so that the current one is complete whenever a
// fork copies it.
struct ProgramAction {
  int signal_number;
  std::array<struct sigaction, 2> slots{};
  std::atomic<unsigned> current{0};
  std::atomic<bool> installed{false};

  const struct sigaction& get() const { return slots[current.load(std::memory_order_acquire)]; }
  void set(const struct sigaction& action) {
    const unsigned next = current.load(std::memory_order_relaxed) ^ 1u;
    slots[next] = action;
    current.store(next, std::memory_order_release);  // the slot is complete before it is current
  }
};

std::array<ProgramAction, 3> program_actions{
    {{.signal_number = SIGSEGV}, {.signal_number = SIGBUS}, {.signal_number = SIGTRAP}}};
std::array<std::atomic<FaultClient>, 5> clients{};  // by rank
std::atomic<pid_t> owner{0};

std::atomic_flag actions_lock;

// Blocks every signal while it is held, so that no handler of this thread can wait for it.
class ActionsLock {
 public:
  ActionsLock() noexcept : before_(set_mask(~KernelMask{0})) {
    while (actions_lock.test_and_set(std::memory_order_acquire)) sched_yield();
  }
  ~ActionsLock() {
    actions_lock.clear(std::memory_order_release);
    set_mask(before_);
  }
  ActionsLock(const ActionsLock&) = delete;
  ActionsLock& operator=(const ActionsLock&) = delete;

 private:
  KernelMask before_;
};

bool is_owner() noexcept {
  return owner.load(std::memory_order_relaxed) == static_cast<pid_t>(syscall(SYS_getpid));
}

void after_fork_in_child() {
  owner.store(static_cast<pid_t>(syscall(SYS_getpid)), std::memory_order_relaxed);
  actions_lock.clear(std::memory_order_relaxed);  // the holder may not exist in the child
}

ProgramAction* action_of(int signal_number) noexcept {
  for (ProgramAction& each : program_actions)
    if (each.signal_number == signal_number) return &each;
  return nullptr;
}

bool resets(const struct sigaction& action) noexcept {
  return (static_cast<unsigned>(action.sa_flags) & SA_RESETHAND) != 0;
}

// Does what the kernel does on delivery: SA_RESETHAND resets the action before the handler runs.
struct sigaction take_for_delivery(ProgramAction& program) noexcept {
  const auto reset = [](struct sigaction action) {
    action.sa_handler = SIG_DFL;
    return action;
  };
  if (!is_owner()) {
    const struct sigaction action = program.get();
    const struct sigaction standard = reset(action);
    if (resets(action)) __sigaction(program.signal_number, &standard, nullptr);
    return action;
  }
  const ActionsLock lock;
  const struct sigaction action = program.get();
  if (resets(action)) program.set(reset(action));
  return action;
}

void deliver(int signal_number, siginfo_t* info, ucontext_t* context) noexcept {
  const bool fault = info->si_code > 0;
  const struct sigaction action = take_for_delivery(*action_of(signal_number));
  if (action.sa_handler == SIG_IGN && !fault) return;
  if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) {
    // The program does not handle the signal. Without our handler a fault happens again and ends
    // the process. After a trap, for example of int3, the program would continue.
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    __sigaction(signal_number, &standard, nullptr);
    if (!fault || signal_number == SIGTRAP)
      raise(signal_number);  // delivered when the handler returns
    return;
  }
  KernelMask mask = first_64(context->uc_sigmask) | first_64(action.sa_mask);
  if ((action.sa_flags & SA_NODEFER) == 0) mask |= bit(signal_number);
  set_mask(mask);
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signal_number, info, context);
  } else {
    action.sa_handler(signal_number);
  }
}

void handle(int signal_number, siginfo_t* info, void* raw_context) noexcept {
  const int saved = errno;
  auto* const context = static_cast<ucontext_t*>(raw_context);
  bool settled = false;
  if (info->si_code > 0) {  // otherwise sent by kill() or raise(), without an address
    for (const auto& client : clients) {
      const FaultClient handler = client.load(std::memory_order_acquire);
      settled = handler != nullptr && handler(signal_number, *info, *context);
      if (settled) break;
    }
  }
  errno = saved;
  if (!settled) deliver(signal_number, info, context);
}

bool is_ours(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == &handle;
}

bool in_front(int signal_number, struct sigaction& current) noexcept {
  return __sigaction(signal_number, nullptr, &current) != 0 || is_ours(current);
}

}  // namespace

void install_fault_chain(FaultRank rank, FaultClient client, FaultSignals signals) noexcept {
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, after_fork_in_child);
  clients[static_cast<size_t>(rank)].store(client, std::memory_order_release);
  owner.store(static_cast<pid_t>(syscall(SYS_getpid)), std::memory_order_relaxed);
  for (ProgramAction& program : program_actions) {
    if (program.signal_number == SIGTRAP && signals == FaultSignals::faults) continue;
    struct sigaction current {};
    if (in_front(program.signal_number, current)) continue;
    const ActionsLock lock;
    if (in_front(program.signal_number, current)) continue;
    program.set(current);
    struct sigaction ours {};
    ours.sa_sigaction = &handle;
    // The program's handler may require an alternate stack and restarted system calls.
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigfillset(&ours.sa_mask);  // deliver() unblocks what the program's action leaves unblocked
    // A program may trap system calls (SIGSYS), also those of clients. A blocked trap ends the
    // process.
    sigdelset(&ours.sa_mask, SIGSYS);
    __sigaction(program.signal_number, &ours, nullptr);
    program.installed.store(true, std::memory_order_release);
  }
}

bool replace_program_action(int signal_number, const struct sigaction* action,
                            struct sigaction* previous) noexcept {
  ProgramAction* const program = action_of(signal_number);
  if (program == nullptr || !program->installed.load(std::memory_order_acquire)) return false;
  struct sigaction before {};
  if (is_owner()) {
    const ActionsLock lock;
    before = program->get();
    if (action != nullptr) program->set(*action);
  } else {
    __sigaction(signal_number, action, &before);
    if (is_ours(before)) before = program->get();
  }
  if (previous != nullptr) *previous = before;
  return true;
}

sigset_t block_all_but_segv(const sigset_t& mask) noexcept {
  sigset_t result = mask;
  sigdelset(&result, SIGSEGV);
  return result;
}

}  // namespace uptempo::vgpu
