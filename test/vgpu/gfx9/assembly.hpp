// Prints a decoded instruction in LLVM's assembly syntax, so that every field the decoder fills can be compared with LLVM's text.
#pragma once

#include <string>

#include "gfx9/decode/decoder.hpp"

namespace uptempo::vgpu::gfx9::test {

// Without the suffixes _e32, _e64, _sdwa, _dpp. For instructions that are only named (Format::other) the mnemonic alone.
std::string to_assembly(const Instruction& instruction, Target target);

}  // namespace uptempo::vgpu::gfx9::test
