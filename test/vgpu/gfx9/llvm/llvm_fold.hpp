// LLVM's optimiser as an oracle: the constant to which it folds an llvm.amdgcn intrinsic of
// constant operands. The authors of the compiler for this hardware write the folds, and every
// program that it compiles uses them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace uptempo::vgpu::gfx9::test {

// Each body is the inside of a function that ends with "ret iN %r" (N up to 64). Returns the
// constants, or nullopt where LLVM leaves a computation. `declarations` holds the "declare" lines
// of the functions that the bodies call.
//
// Errors: throws std::runtime_error with LLVM's message if LLVM does not accept the text.
std::vector<std::optional<uint64_t>> llvm_fold(const std::string& declarations,
                                               const std::string& result_type,
                                               const std::vector<std::string>& bodies);

}  // namespace uptempo::vgpu::gfx9::test
