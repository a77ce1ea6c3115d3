// Runs a program to its end and keeps what it said.
#pragma once

#include <string>
#include <vector>

namespace uptempo::vgpu {

struct Finished {
  int status = -1;  // exit status; 128 + signal when one ended it
  std::string out;
  std::string err;
};

// `arguments[0]` is the program, found in PATH when it holds no slash. `environment` entries ("NAME=value") are added for it.
Finished run(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {});

// The launcher of this build, followed by `arguments`.
Finished launch(std::vector<std::string> arguments, const std::vector<std::string>& environment = {});

}  // namespace uptempo::vgpu
