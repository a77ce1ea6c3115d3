// main() of a sample without options of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/vgpu/launch.hpp"

namespace uptempo::support {

// Parses `--device auto|hardware|virtual` (the option's name may be left out), chooses that device,
// and runs `body`, which returns whether its results are right. Returns the exit code, with the
// meanings of run_program(). Call it first in main(): it may replace the process by the same
// program under uptempo-vgpu, with `launcher_options`.
int run_sample(const std::string& name, const std::string& description, int argc, char** argv,
               const std::function<bool(vgpu::RunningOn device)>& body,
               const std::vector<std::string>& launcher_options = {});

}  // namespace uptempo::support
