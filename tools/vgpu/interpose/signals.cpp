// sigaction() and the functions of signal masks. Clients of device/fault_chain.hpp depend on
// faults, and where the kernel refuses userfaultfd, a fault on the doorbell page wakes an idle
// device (cp/doorbell/doorbell_watch.hpp). So the program must not replace the fault handler or
// block SIGSEGV.
//
// - The device calls the action that the program installs for every other fault
//   (device/fault_chain.hpp). The program reads back its own action.
// - SIGSEGV is removed from every mask that the program sets here, masks of other signals' actions
//   included. The program reads such a mask back without SIGSEGV.
// - Not covered: actions set by raw system calls, and masks set by these,
//   pthread_attr_setsigmask_np() or setcontext(). A fault under a mask with SIGSEGV ends the
//   process. Where doorbells are faults, a program must therefore not ring a sleeping device under
//   such a mask, nor inside its SIGSEGV handler unless the handler has SA_NODEFER.
// - SIGQUIT asks for a hang report while the program leaves it its default action
//   (kfd/report/hang_signal.hpp). The program reads back the default action, and its own one
//   counts from then on.
#include <pthread.h>
#include <signal.h>

#include "device/fault_chain.hpp"
#include "interpose/real.hpp"
#include "kfd/report/hang_signal.hpp"

namespace uptempo::vgpu::interpose {
namespace {

// Returns the mask to pass on. A mask that blocks signals loses SIGSEGV; one that unblocks keeps
// it.
const sigset_t* permitted(int how, const sigset_t* mask, sigset_t& storage) {
  if (mask == nullptr || how == SIG_UNBLOCK) return mask;
  storage = block_all_but_segv(*mask);
  return &storage;
}

// The parent may have started this process with SIGSEGV blocked.
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
  if (uptempo::vgpu::kfd::replace_hang_signal(signal_number, action, previous)) return 0;
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
  sigaddset(&action.sa_mask, signal_number);  // like the C library's signal()
  if (uptempo::vgpu::replace_program_action(signal_number, &action, &previous))
    return previous.sa_handler;
  if (uptempo::vgpu::kfd::replace_hang_signal(signal_number, &action, &previous))
    return previous.sa_handler;
  static constinit Next<decltype(&::signal)> real{"signal"};
  return real(signal_number, handler);
}

UPTEMPO_VGPU_EXPORT int sigprocmask(int how, const sigset_t* mask, sigset_t* previous) noexcept {
  static constinit Next<decltype(&::sigprocmask)> real{"sigprocmask"};
  sigset_t storage;
  return real(how, permitted(how, mask, storage), previous);
}

UPTEMPO_VGPU_EXPORT int pthread_sigmask(int how, const sigset_t* mask,
                                        sigset_t* previous) noexcept {
  static constinit Next<decltype(&::pthread_sigmask)> real{"pthread_sigmask"};
  sigset_t storage;
  return real(how, permitted(how, mask, storage), previous);
}
