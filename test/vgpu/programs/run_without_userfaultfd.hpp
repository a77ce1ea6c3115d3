// Runs the launcher of this build where the kernel refuses userfaultfd.
#pragma once

#include <string>
#include <vector>

#include "run.hpp"

namespace uptempo::vgpu {

inline CommandResult launch_without_userfaultfd(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {UPTEMPO_VGPU_WITHOUT_USERFAULTFD, UPTEMPO_VGPU_LAUNCHER});
  return run_command(arguments);
}

}  // namespace uptempo::vgpu
