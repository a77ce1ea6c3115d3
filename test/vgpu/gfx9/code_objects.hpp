// gfx9 code objects found in clang offload bundles, the form that shared libraries of ROCm and our own kernels carry them in.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gfx9/decode/decoder.hpp"

namespace uptempo::vgpu::gfx9::test {

struct Code {
  Target target;
  std::string object;           // "librocrand.so.1.1 #0 gfx90a"
  std::vector<uint32_t> words;  // .text
};

// Calls `visit` with every .text of a gfx9 code object inside `file`, whatever surrounds it: bundles of a shared library, or one plain ELF.
// One at a time: the libraries of ROCm hold gigabytes of them.
void for_each_code(const std::string& file, const std::function<void(const Code&)>& visit);

}  // namespace uptempo::vgpu::gfx9::test
