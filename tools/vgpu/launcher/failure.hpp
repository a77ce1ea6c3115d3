// How the launcher fails: with a sentence and a status that follows the shell's convention.
#pragma once

#include <string>

namespace uptempo::vgpu {

constexpr int kUsage = 2;
constexpr int kCannotRun = 126;
constexpr int kNotFound = 127;

struct Failure {
  int status;
  std::string sentence;
};

}  // namespace uptempo::vgpu
