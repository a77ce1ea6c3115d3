// Float16 as bits in the low half of a word, for the scalar paths.
#pragma once

#include <cstdint>

namespace uptempo::vgpu::gfx9::vector {

float half_value(uint32_t bits) noexcept;  // exact, NaNs become quiet

// Rounds as MXCSR specifies (usually nearest even). An overflow gives infinity or the largest
// number, depending on the rounding.
uint32_t half_of(float value) noexcept;
// `mxcsr_rounding`: 0 nearest even, 1 down, 2 up, 3 toward zero.
uint32_t half_of(float value, unsigned mxcsr_rounding) noexcept;

}  // namespace uptempo::vgpu::gfx9::vector
