#include "gfx9/decode/decoder.hpp"

namespace uptempo::vgpu::gfx9 {

bool flushes_denormals(Opcode opcode, Target target) noexcept {
  if (target != Target::gfx90a) return false;
  using enum Opcode;
  switch (opcode) {
    case v_mfma_f32_32x32x4f16:
    case v_mfma_f32_16x16x4f16:
    case v_mfma_f32_4x4x4f16:
    case v_mfma_f32_32x32x8f16:
    case v_mfma_f32_16x16x16f16:
    case v_mfma_f32_32x32x2bf16:
    case v_mfma_f32_16x16x2bf16:
    case v_mfma_f32_4x4x2bf16:
    case v_mfma_f32_32x32x4bf16:
    case v_mfma_f32_16x16x8bf16:
    case v_mfma_f32_32x32x4bf16_1k:
    case v_mfma_f32_16x16x4bf16_1k:
    case v_mfma_f32_4x4x4bf16_1k:
    case v_mfma_f32_32x32x8bf16_1k:
    case v_mfma_f32_16x16x16bf16_1k:
    case v_dot2_f32_f16:
    case v_dot2c_f32_f16:
      return true;
    default:
      return false;
  }
}

}  // namespace uptempo::vgpu::gfx9
