// Which core is whose, and what the device's threads have used of theirs.
#pragma once

#include <sys/types.h>

namespace uptempo::vgpu::consume {

// The thread, by default the caller, stays on that core. Throws std::runtime_error where it may not.
void pin(int core, pid_t thread = 0);

struct Cores {
  int host, other;
};
// The caller stays on `host` from now on. Throws std::runtime_error where the process may use only one core.
Cores pin_host();

// The command processor stays on `core` from now on: left to itself the scheduler at times wakes it on the core of the thread that rings, and the two take
// turns there although another core is free. Throws std::runtime_error in a process without a device.
void pin_device(int core);

// Processor time of the device's threads so far, in nanoseconds.
double device_cpu_ns();

}  // namespace uptempo::vgpu::consume
