// LLVM's optimiser as an oracle: what it makes of an llvm.amdgcn intrinsic whose operands are
// constants. The folds are written by those who write the compiler for the hardware, and are part
// of every program that it compiles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace uptempo::vgpu::gfx9::test {

// Each body is the inside of a function that ends with "ret iN %r" (N up to 64). The returned
// constants, or nullopt where LLVM leaves a computation. `declarations` holds the "declare" lines
// of what the bodies call. Throws std::runtime_error with LLVM's message for text that it does not
// accept.
std::vector<std::optional<uint64_t>> llvm_fold(const std::string& declarations,
                                               const std::string& result_type,
                                               const std::vector<std::string>& bodies);

}  // namespace uptempo::vgpu::gfx9::test
