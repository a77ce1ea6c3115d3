// sigaction() and the signal masks, as far as faults go: an idle device is woken by a fault on its doorbell page (cp/doorbell_watch.hpp), so the
// program must neither displace the handler nor block SIGSEGV. The action that it installs is called for every other fault (device/fault_chain.hpp) and is
// what it reads back. SIGSEGV is left out of every mask that it sets here, actions' masks for other signals included, and is missing from what it reads
// back. Not seen: masks set by raw system calls, pthread_attr_setsigmask_np() or setcontext(). As in any process a fault ends it where SIGSEGV is
// blocked, so no sleeping device may be rung under such a mask, nor within the program's SIGSEGV handler unless that has SA_NODEFER.
#include <pthread.h>
#include <signal.h>

#include "device/fault_chain.hpp"
#include "interpose/real.hpp"

namespace uptempo::vgpu::interpose {
namespace {

// The mask to pass on: unblocking may name SIGSEGV, blocking may not.
const sigset_t* permitted(int how, const sigset_t* mask, sigset_t& storage) {
  if (mask == nullptr || how == SIG_UNBLOCK) return mask;
  storage = block_all_but_segv(*mask);
  return &storage;
}

// A process may be started with SIGSEGV blocked by whoever started it.
__attribute__((constructor)) void open_segv() {
  sigset_t segv;
  sigemptyset(&segv);
  sigaddset(&segv, SIGSEGV);
  pthread_sigmask(SIG_UNBLOCK, &segv, nullptr);
}

}  // namespace
}  // namespace uptempo::vgpu::interpose

using namespace uptempo::vgpu::interpose;

UPTEMPO_VGPU_EXPORT int sigaction(int signal_number, const struct sigaction* action,
                                  struct sigaction* previous) noexcept {
  if (uptempo::vgpu::replace_program_action(signal_number, action, previous)) return 0;
  static constinit Next<decltype(&::sigaction)> real{"sigaction"};
  if (action == nullptr || signal_number == SIGSEGV) return real(signal_number, action, previous);
  struct sigaction permitted_action = *action;
  permitted_action.sa_mask = uptempo::vgpu::block_all_but_segv(action->sa_mask);
  return real(signal_number, &permitted_action, previous);
}

UPTEMPO_VGPU_EXPORT sighandler_t signal(int signal_number, sighandler_t handler) noexcept {
  struct sigaction action {};
  struct sigaction previous {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaddset(&action.sa_mask, signal_number);  // as the C library's signal() does
  if (uptempo::vgpu::replace_program_action(signal_number, &action, &previous)) return previous.sa_handler;
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
