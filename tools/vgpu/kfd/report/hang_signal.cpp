#include "kfd/report/hang_signal.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "device/fault_chain.hpp"

// glibc's own name of sigaction(), which the library interposes.
extern "C" int __sigaction(int signal_number, const struct sigaction* action,
                           struct sigaction* previous) noexcept;

namespace uptempo::vgpu::kfd {
namespace {

std::atomic<sem_t*> hang_signal_wake{nullptr};
std::atomic<pid_t> hang_signal_owner{0};

pid_t process_id() noexcept { return static_cast<pid_t>(syscall(SYS_getpid)); }

struct sigaction default_action() noexcept {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  return action;
}

void on_hang_signal(int signal_number) noexcept {
  const int saved = errno;
  if (hang_signal_owner.load(std::memory_order_relaxed) != process_id()) {
    const struct sigaction standard = default_action();
    __sigaction(signal_number, &standard, nullptr);
    raise(signal_number);  // delivered when the handler returns
  } else if (sem_t* const wake = hang_signal_wake.load(std::memory_order_acquire)) {
    sem_post(wake);
  }
  errno = saved;
}

bool is_hang_handler(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == &on_hang_signal;
}

// The program sees the handler of a parent as the default action.
bool is_default(const struct sigaction& action) noexcept {
  if (is_hang_handler(action))
    return hang_signal_owner.load(std::memory_order_relaxed) != process_id();
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL;
}

}  // namespace

bool install_hang_signal(sem_t& wake) noexcept {
  struct sigaction current {};
  if (__sigaction(SIGQUIT, nullptr, &current) != 0 || !is_default(current)) return false;
  hang_signal_owner.store(process_id(), std::memory_order_relaxed);
  hang_signal_wake.store(&wake, std::memory_order_release);
  struct sigaction ours {};
  ours.sa_handler = &on_hang_signal;
  ours.sa_flags = SA_RESTART | SA_ONSTACK;
  return __sigaction(SIGQUIT, &ours, nullptr) == 0;
}

void remove_hang_signal() noexcept {
  struct sigaction current {};
  const struct sigaction standard = default_action();
  if (__sigaction(SIGQUIT, nullptr, &current) == 0 && is_hang_handler(current))
    __sigaction(SIGQUIT, &standard, nullptr);
  hang_signal_wake.store(nullptr, std::memory_order_release);
}

bool replace_hang_signal(int signal_number, const struct sigaction* action,
                         struct sigaction* previous) noexcept {
  if (signal_number != SIGQUIT) return false;
  struct sigaction before {};
  struct sigaction permitted {};
  if (action != nullptr) {
    permitted = *action;
    permitted.sa_mask = block_all_but_segv(action->sa_mask);
  }
  __sigaction(signal_number, action == nullptr ? nullptr : &permitted, &before);
  if (is_hang_handler(before)) before = default_action();
  if (previous != nullptr) *previous = before;
  return true;
}

}  // namespace uptempo::vgpu::kfd
