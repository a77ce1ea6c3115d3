// Threads of the device inside the program's process, hidden from the program as far as possible.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

namespace uptempo::vgpu {

// Starts a thread that handles none of the program's signals and has a name for debuggers.
// Synchronous faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL) stay enabled, because the device handles
// them. The thread may use every core that the process was started on, whatever the caller's
// affinity. Returns a thread that is not joinable if the system refuses another one. If memory is
// exhausted in the thread, it says so and ends the process with status 1.
// The thread belongs to the GPU of its starter, see StartsThreadsOf.
std::thread start_device_thread(const char* name, std::function<void()> body) noexcept;

// Returns the number of cores that the process was started on: its affinity when this library was
// loaded.
uint32_t process_cores() noexcept;

// Asks the scheduler for time slices of 0.1 ms instead of some 3 ms. On a fully loaded machine, a
// thread that has yielded then continues after its own slice, and may preempt others when it wakes.
// Needs Linux 6.12; no effect on older kernels.
void prefer_latency() noexcept;

// Whether the caller is a device thread. Async-signal-safe.
bool on_device_thread() noexcept;

// Returns the number of the GPU (Device::gpu) that the calling device thread belongs to.
// Async-signal-safe.
uint32_t gpu_of_thread() noexcept;

// While it exists, device threads that the calling thread starts belong to that GPU.
class StartsThreadsOf {
 public:
  explicit StartsThreadsOf(uint32_t gpu) noexcept;
  ~StartsThreadsOf();
  StartsThreadsOf(const StartsThreadsOf&) = delete;
  StartsThreadsOf& operator=(const StartsThreadsOf&) = delete;

 private:
  const uint32_t before_;
};

}  // namespace uptempo::vgpu
