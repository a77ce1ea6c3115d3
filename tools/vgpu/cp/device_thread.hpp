// Threads of the device inside the program's process: invisible to it as far as possible.
#pragma once

#include <functional>
#include <thread>

namespace uptempo::vgpu {

// A thread that handles none of the program's signals, under a name that debuggers show. Synchronous faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL)
// stay enabled: they are ours.
std::thread start_device_thread(const char* name, std::function<void()> body);

// Whether the caller is such a thread. Async-signal-safe.
bool on_device_thread() noexcept;

}  // namespace uptempo::vgpu
