#include "cp/device_thread.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <utility>

namespace uptempo::vgpu {
namespace {

thread_local bool is_device_thread = false;

// struct sched_attr of linux/sched/types.h, first version; glibc has it from 2.41 on.
struct SchedulingAttributes {
  std::uint32_t size_bytes;
  std::uint32_t policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t slice_ns;  // `sched_runtime`: for SCHED_OTHER the slice, from 6.12 on
  std::uint64_t deadline_ns;
  std::uint64_t period_ns;
};
static_assert(sizeof(SchedulingAttributes) == 48);

}  // namespace

void prefer_latency() noexcept {
  SchedulingAttributes attributes{};
  // What the thread inherited (policy, nice) stays.
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  attributes.slice_ns = 100'000;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

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
