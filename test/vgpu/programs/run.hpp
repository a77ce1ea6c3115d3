// Runs a program to its end and keeps its output.
#pragma once

#include <string>
#include <vector>

namespace uptempo::vgpu {

struct Finished {
  int status = -1;  // exit status, or 128 + the number of the signal that ended it
  std::string out;
  std::string err;
};

// `arguments[0]` is the program, searched in PATH unless it contains a slash. `environment` entries
// ("NAME=value") are added to the program's environment.
Finished run(const std::vector<std::string>& arguments,
             const std::vector<std::string>& environment = {});

// Runs the launcher of this build with `arguments`.
Finished launch(std::vector<std::string> arguments,
                const std::vector<std::string>& environment = {});

}  // namespace uptempo::vgpu
