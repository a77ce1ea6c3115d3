#include "cp/device_thread.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

namespace uptempo::vgpu {
namespace {

thread_local bool is_device_thread = false;
thread_local uint32_t thread_gpu = 0;

// struct sched_attr of linux/sched/types.h, first version. glibc declares it from 2.41 on.
struct SchedulingAttributes {
  uint32_t size_bytes;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t slice_ns;  // `sched_runtime`: the slice of SCHED_OTHER, from Linux 6.12 on
  uint64_t deadline_ns;
  uint64_t period_ns;
};
static_assert(sizeof(SchedulingAttributes) == 48);

struct ProcessCores {
  cpu_set_t set;
  uint32_t count = 0;  // 0: unknown

  ProcessCores() noexcept {
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) count = static_cast<uint32_t>(CPU_COUNT(&set));
  }
};
// Read when the library is loaded, because the program may later pin the thread that opens the
// device.
const ProcessCores kCores;

// Sets the caller's signal mask while it starts a thread, since the thread inherits it.
class MaskForNewThread {
 public:
  MaskForNewThread() noexcept {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&blocked, fault);
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~MaskForNewThread() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  MaskForNewThread(const MaskForNewThread&) = delete;
  MaskForNewThread& operator=(const MaskForNewThread&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

void prefer_latency() noexcept {
  SchedulingAttributes attributes{};
  // Keeps the inherited policy and nice value.
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  attributes.slice_ns = 100'000;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

bool on_device_thread() noexcept { return is_device_thread; }

uint32_t gpu_of_thread() noexcept { return thread_gpu; }

StartsThreadsOf::StartsThreadsOf(uint32_t gpu) noexcept : before_(thread_gpu) { thread_gpu = gpu; }
StartsThreadsOf::~StartsThreadsOf() { thread_gpu = before_; }

uint32_t process_cores() noexcept { return std::max(1u, kCores.count); }

std::thread start_device_thread(const char* name, std::function<void()> body) noexcept {
  const MaskForNewThread mask;
  try {
    std::thread thread([run = std::move(body), gpu = thread_gpu] {
      is_device_thread = true;
      thread_gpu = gpu;
      // Fails if the system has removed the cores since. The thread then keeps its affinity.
      if (kCores.count != 0) sched_setaffinity(0, sizeof kCores.set, &kCores.set);
      try {
        run();
      } catch (const std::bad_alloc&) {
        // A GPU does not lack the process's memory, so no error of a queue says it.
        constexpr std::string_view kText =
            "uptempo-vgpu: memory is exhausted in a thread of the device: the process ends\n";
        (void)!write(STDERR_FILENO, kText.data(), kText.size());
        _exit(1);
      }
    });
    pthread_setname_np(thread.native_handle(), name);
    return thread;
  } catch (const std::system_error&) {
    return {};
  } catch (const std::bad_alloc&) {
    return {};
  }
}

}  // namespace uptempo::vgpu
