// Runs the launcher of this build.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/support/command.hpp"

namespace uptempo::vgpu {

using uptempo::test::CommandResult;
using uptempo::test::run_command;

// `environment`: entries ("NAME=value") that are added to the launcher's environment.
inline CommandResult launch(std::vector<std::string> arguments,
                            std::vector<std::string> environment = {}) {
  arguments.insert(arguments.begin(), UPTEMPO_VGPU_LAUNCHER);
  return run_command(arguments, {.environment = std::move(environment)});
}

inline bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace uptempo::vgpu
