// sigaction() and the signal masks, as far as SIGSEGV goes: an idle device is woken by a fault on its doorbell page (cp/doorbell_watch.hpp), so the
// program must neither displace that handler nor block the signal. What it installs is called for every other fault; what it asks for is what
// it gets to read back.
#include <pthread.h>
#include <signal.h>

#include "cp/doorbell_watch.hpp"
#include "interpose/real.hpp"

namespace uptempo::vgpu::interpose {
namespace {

// The mask to pass on: unblocking may name SIGSEGV, blocking may not.
const sigset_t* permitted(int how, const sigset_t* mask, sigset_t& storage) {
  if (mask == nullptr || how == SIG_UNBLOCK) return mask;
  storage = block_all_but_segv(*mask);
  return &storage;
}

}  // namespace
}  // namespace uptempo::vgpu::interpose

using namespace uptempo::vgpu::interpose;

UPTEMPO_VGPU_EXPORT int sigaction(int signal_number, const struct sigaction* action,
                                  struct sigaction* previous) noexcept {
  if (signal_number == SIGSEGV && uptempo::vgpu::replace_program_segv_action(action, previous)) return 0;
  static constinit Next<decltype(&::sigaction)> real{"sigaction"};
  return real(signal_number, action, previous);
}

UPTEMPO_VGPU_EXPORT sighandler_t signal(int signal_number, sighandler_t handler) noexcept {
  if (signal_number == SIGSEGV) {
    struct sigaction action {};
    struct sigaction previous {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    if (uptempo::vgpu::replace_program_segv_action(&action, &previous)) return previous.sa_handler;
  }
  static constinit Next<decltype(&::signal)> real{"signal"};
  return real(signal_number, handler);
}

UPTEMPO_VGPU_EXPORT int sigprocmask(int how, const sigset_t* mask, sigset_t* previous) noexcept {
  static constinit Next<decltype(&::sigprocmask)> real{"sigprocmask"};
  sigset_t storage;
  return real(how, permitted(how, mask, storage), previous);
}

UPTEMPO_VGPU_EXPORT int pthread_sigmask(int how, const sigset_t* mask, sigset_t* previous) noexcept {
  static constinit Next<decltype(&::pthread_sigmask)> real{"pthread_sigmask"};
  sigset_t storage;
  return real(how, permitted(how, mask, storage), previous);
}
