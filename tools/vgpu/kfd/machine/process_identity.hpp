// ProcessIdentity: a program that runs under a pid. Pids are reused, and a program may execute
// another one under its pid, so a pid alone identifies nothing.
//
// Thread safety: any thread. Each call reads a file of /proc (some 20 us).
#pragma once

#include <cstdint>
#include <optional>

namespace uptempo::vgpu::kfd {

struct ProcessIdentity {
  uint64_t pid = 0;
  uint64_t start_ticks = 0;    // since boot
  uint64_t stack_address = 0;  // of the program that the process executes; 0: unknown

  // Returns nullopt if /proc cannot be read.
  static std::optional<ProcessIdentity> of_this_process();

  // Whether that program still runs. A zombie does not, unless other threads of it do. A program
  // whose stack address cannot be read counts as the same.
  bool is_alive() const;
};

// Whether that process is stopped, by SIGSTOP or a debugger. False if it cannot be asked.
bool is_stopped(uint64_t pid);

// Returns the inode of this process's PID namespace; 0 if it cannot be read. A pid means something
// else in another namespace.
uint64_t pid_namespace();

}  // namespace uptempo::vgpu::kfd
