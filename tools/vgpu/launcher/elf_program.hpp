// What the launcher must know of a program before it preloads something into it.
#pragma once

#include <string>
#include <vector>

namespace uptempo::vgpu {

struct ElfProgram {
  bool elf = false;      // false: a script, or not readable; its interpreter will be what loads libraries
  bool dynamic = false;  // has an interpreter: LD_PRELOAD works
  bool elf64 = false;
  std::vector<std::string> needed;  // DT_NEEDED, in order
};

// Never throws: a file that cannot be read or is malformed yields an empty answer.
ElfProgram inspect_program(const std::string& path) noexcept;

}  // namespace uptempo::vgpu
