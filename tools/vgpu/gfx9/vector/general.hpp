// The slow way through an instruction: stage every operand, run the entry's core on all lanes, put the result back.
#pragma once

#include "gfx9/vector/entry.hpp"

namespace uptempo::vgpu::gfx9::vector {

// Executes `op`, which must be one that translate_vector() accepted, in any form; about 15 to 40 ns.
const Op* execute_general(const Op& op, Wave& wave, const Entry& entry);

}  // namespace uptempo::vgpu::gfx9::vector
