// Properties of a program that decide how the launcher preloads a library into it.
#pragma once

#include <string>
#include <vector>

namespace uptempo::vgpu {

struct ElfProgram {
  // false: a script or not readable; the script's interpreter loads the libraries
  bool elf = false;
  bool dynamic = false;  // has a program interpreter, so LD_PRELOAD works
  bool elf64 = false;
  std::vector<std::string> needed;  // DT_NEEDED, in order
};

// Never throws: for an unreadable or malformed file it returns a default-constructed result.
ElfProgram inspect_program(const std::string& path) noexcept;

}  // namespace uptempo::vgpu
