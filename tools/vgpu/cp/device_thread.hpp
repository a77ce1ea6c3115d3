// Threads of the device inside the program's process: invisible to it as far as possible.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

namespace uptempo::vgpu {

// A thread that handles none of the program's signals, under a name that debuggers show. Synchronous faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL)
// stay enabled: they are ours. It may use every core that the process was started on, wherever the caller is pinned. Not joinable: the
// system has refused another thread.
std::thread start_device_thread(const char* name, std::function<void()> body) noexcept;

// How many cores the process was started on: its affinity when this library was loaded.
uint32_t process_cores() noexcept;

// Asks the scheduler for time slices of 0.1 ms instead of some 3 ms: where every core is busy, a thread that has yielded comes back after its own slice, and
// one with short slices may preempt others when it wakes. Linux from 6.12; changes nothing on older kernels.
void prefer_latency() noexcept;

// Whether the caller is such a thread. Async-signal-safe.
bool on_device_thread() noexcept;

}  // namespace uptempo::vgpu
