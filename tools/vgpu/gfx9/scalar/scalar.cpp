#include "gfx9/scalar/scalar.hpp"

namespace uptempo::vgpu::gfx9 {

Handler translate_scalar(Instruction& in, MemoryPolicy policy) noexcept {
  if (in.format == Format::smem) return scalar::translate_memory(in, policy);
  if (const Handler handler = scalar::translate_alu(in)) return handler;
  return scalar::translate_control(in, policy);
}

}  // namespace uptempo::vgpu::gfx9
