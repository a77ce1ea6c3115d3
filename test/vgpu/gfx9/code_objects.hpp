// gfx9 code objects found in clang offload bundles, the form that shared libraries of ROCm and our own kernels carry them in.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gfx9/decoder.hpp"

namespace uptempo::vgpu::gfx9::test {

struct Code {
  Target target;
  std::string object;                // "librocrand.so.1.1 #0 gfx90a"
  std::vector<std::uint32_t> words;  // .text
};

// Every .text of a gfx9 code object inside the bytes of `file`, whatever surrounds it: bundles of a shared library, or one plain ELF.
std::vector<Code> find_code(const std::string& file);

}  // namespace uptempo::vgpu::gfx9::test
