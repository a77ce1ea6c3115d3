#include "cp/device_thread.hpp"

#include <pthread.h>

#include <csignal>
#include <utility>

namespace uptempo::vgpu {
namespace {

thread_local bool is_device_thread = false;

}  // namespace

bool on_device_thread() noexcept { return is_device_thread; }

std::thread start_device_thread(const char* name, std::function<void()> body) {
  sigset_t blocked;
  sigset_t previous;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &previous);  // inherited by the new thread
  std::thread thread([run = std::move(body)] {
    is_device_thread = true;
    run();
  });
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace uptempo::vgpu
