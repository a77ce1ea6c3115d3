// Assigns cores to the program and the device, and reads the device's processor time.
#pragma once

#include <sys/types.h>

namespace uptempo::vgpu::consume {

// Pins the thread, by default the caller, to `core`. Throws std::runtime_error if the process may
// not use it.
void pin(int core, pid_t thread = 0);

struct Cores {
  int host, other;
};
// Pins the caller to `host`. Throws std::runtime_error if the process may use only one core.
Cores pin_host();

// Pins the command processor to `core`. Otherwise the scheduler sometimes wakes it on the core of
// the thread that rings the doorbell, and the two take turns although another core is free. Throws
// std::runtime_error in a process without a device.
void pin_device(int core);

// Processor time of the device's threads since their start, in nanoseconds.
double device_cpu_ns();

}  // namespace uptempo::vgpu::consume
