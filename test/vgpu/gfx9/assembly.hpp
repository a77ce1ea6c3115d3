// Prints a decoded instruction in LLVM's assembly syntax, so that tests can compare every field of
// the decoder with LLVM's text.
#pragma once

#include <string>

#include "gfx9/decode/decoder.hpp"

namespace uptempo::vgpu::gfx9::test {

// Omits the suffixes _e32, _e64, _sdwa and _dpp. Returns only the mnemonic for instructions whose
// operands are not decoded (Format::other).
std::string to_assembly(const Instruction& instruction, Target target);

}  // namespace uptempo::vgpu::gfx9::test
