// Finds gfx9 code objects in clang offload bundles, which ROCm's shared libraries and our own
// kernels contain.
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

// Calls `visit` with every .text of a gfx9 code object in `file`: a single ELF, or any file that
// contains bundles. It holds one code object at a time, because ROCm's libraries have gigabytes of
// them.
void for_each_code(const std::string& file, const std::function<void(const Code&)>& visit);

// The paths of those of ROCm's libraries `names` that this machine has.
std::vector<std::string> rocm_libraries(const std::vector<std::string>& names);
// AMD's compiled kernels on every machine: tools/setup.sh installs one of these.
inline const std::vector<std::string> kSmallLibraries{"librocrand.so.1", "librocfft.so.0"};
// 500 more kernels, which tools/check --all installs.
inline const std::vector<std::string> kSparseLibraries{"librocsparse.so.0", "librocsparse.so.1"};

}  // namespace uptempo::vgpu::gfx9::test
