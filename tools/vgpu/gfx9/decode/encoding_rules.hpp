// Rules beside the encoding table: each holds for a few opcodes of one format.
#pragma once

#include "gfx9/decode/encoding.hpp"

namespace uptempo::vgpu::gfx9 {

// The lowest register of an aligned group. The hardware ignores the low bits of a scalar register
// number.
constexpr unsigned align_scalar(unsigned code, unsigned count) {
  const unsigned step = count > 4 ? 4 : count;
  if (code <= 101) return code / step * step;
  if (code >= 108 && code <= 123) return 108 + (code - 108) / step * step;
  return code;
}

// Scalar registers 0..127 that exist: SGPRs, FLAT_SCRATCH, XNACK_MASK, VCC, trap temporaries, M0,
// EXEC.
constexpr bool is_scalar_register(unsigned code, unsigned count) {
  if (code <= 101) return align_scalar(code, count) + count <= 102;
  if (code >= 108 && code <= 123) return align_scalar(code, count) + count <= 124;
  if (count == 1) return code <= 107 || code == kM0 || code == kExecLo || code == kExecLo + 1;
  return count == 2 &&
         (code == kFlatScratchLo || code == kXnackMaskLo || code == kVccLo || code == kExecLo);
}

// Read-only sources: apertures, pops_exiting_wave_id, vccz, execz, scc. lds_direct is a source of
// 32 bits only.
constexpr bool is_special_source(unsigned code, unsigned count) {
  return is_aperture(code) || is_status(code) || (code == 254 && count == 1);
}

// SOPK whose simm16 is not sign-extended.
constexpr bool is_unsigned_sopk(Opcode opcode) {
  switch (opcode) {
    case Opcode::s_cmpk_eq_u32:
    case Opcode::s_cmpk_lg_u32:
    case Opcode::s_cmpk_gt_u32:
    case Opcode::s_cmpk_ge_u32:
    case Opcode::s_cmpk_lt_u32:
    case Opcode::s_cmpk_le_u32:
    case Opcode::s_getreg_b32:
    case Opcode::s_setreg_b32:
      return true;
    default:
      return false;
  }
}

// SMEM with a base address that has a GLC bit: all except these.
constexpr bool has_glc(Opcode opcode) {
  switch (opcode) {
    case Opcode::s_dcache_discard:
    case Opcode::s_dcache_discard_x2:
    case Opcode::s_atc_probe:
    case Opcode::s_atc_probe_buffer:
      return false;
    default:
      return true;
  }
}

// Instructions that ignore neg and abs of a DPP source that is not a float. The others reject them.
constexpr bool ignores_dpp_modifiers(Opcode opcode) {
  switch (opcode) {
    case Opcode::v_ldexp_f16:
    case Opcode::v_dot2c_i32_i16:
    case Opcode::v_dot4c_i32_i8:
    case Opcode::v_dot8c_i32_i4:
      return true;
    default:
      return false;
  }
}

// VOP3P whose neg_hi field holds abs.
constexpr bool takes_abs(Opcode opcode) {
  switch (opcode) {
    case Opcode::v_mad_mix_f32:
    case Opcode::v_mad_mixlo_f16:
    case Opcode::v_mad_mixhi_f16:
    case Opcode::v_fma_mix_f32:
    case Opcode::v_fma_mixlo_f16:
    case Opcode::v_fma_mixhi_f16:
      return true;
    default:
      return false;
  }
}

// Global wave sync and ordered count exist in GDS only. Permutes do not access memory.
constexpr bool is_global_only(Opcode opcode) {
  return (opcode >= Opcode::ds_gws_barrier && opcode <= Opcode::ds_gws_sema_v) ||
         opcode == Opcode::ds_ordered_count;
}

constexpr bool is_local_only(Opcode opcode) {
  return opcode == Opcode::ds_permute_b32 || opcode == Opcode::ds_bpermute_b32;
}

// Loads with an LDS bit: the data goes to the group segment.
constexpr bool can_load_to_lds(Opcode opcode) {
  switch (opcode) {
    case Opcode::global_load_ubyte:
    case Opcode::global_load_sbyte:
    case Opcode::global_load_ushort:
    case Opcode::global_load_sshort:
    case Opcode::global_load_dword:
    case Opcode::scratch_load_ubyte:
    case Opcode::scratch_load_sbyte:
    case Opcode::scratch_load_ushort:
    case Opcode::scratch_load_sshort:
    case Opcode::scratch_load_dword:
    case Opcode::buffer_load_ubyte:
    case Opcode::buffer_load_sbyte:
    case Opcode::buffer_load_ushort:
    case Opcode::buffer_load_sshort:
    case Opcode::buffer_load_dword:
    case Opcode::buffer_load_format_x:
      return true;
    default:
      return false;
  }
}

// Conversions from 8-bit floats. Their SDWA form selects a part of the source only.
constexpr bool is_from_8_bits(Opcode opcode) {
  return opcode == Opcode::v_cvt_f32_fp8 || opcode == Opcode::v_cvt_f32_bf8 ||
         opcode == Opcode::v_cvt_pk_f32_fp8 || opcode == Opcode::v_cvt_pk_f32_bf8;
}

// gfx942's loads that go to LDS: opcodes of their own instead of an LDS bit.
constexpr bool loads_to_lds(Opcode opcode) {
  switch (opcode) {
    case Opcode::global_load_lds_ubyte:
    case Opcode::global_load_lds_sbyte:
    case Opcode::global_load_lds_ushort:
    case Opcode::global_load_lds_sshort:
    case Opcode::global_load_lds_dword:
    case Opcode::scratch_load_lds_ubyte:
    case Opcode::scratch_load_lds_sbyte:
    case Opcode::scratch_load_lds_ushort:
    case Opcode::scratch_load_lds_sshort:
    case Opcode::scratch_load_lds_dword:
      return true;
    default:
      return false;
  }
}

// Atomics on floats: no SCC bit before gfx942, and gfx908 has no returning form.
constexpr bool is_float_atomic(Opcode opcode) {
  switch (opcode) {
    case Opcode::flat_atomic_add_f64:
    case Opcode::flat_atomic_min_f64:
    case Opcode::flat_atomic_max_f64:
    case Opcode::global_atomic_add_f64:
    case Opcode::global_atomic_min_f64:
    case Opcode::global_atomic_max_f64:
    case Opcode::global_atomic_add_f32:
    case Opcode::global_atomic_pk_add_f16:
    case Opcode::buffer_atomic_add_f64:
    case Opcode::buffer_atomic_min_f64:
    case Opcode::buffer_atomic_max_f64:
    case Opcode::buffer_atomic_add_f32:
    case Opcode::buffer_atomic_pk_add_f16:
      return true;
    default:
      return false;
  }
}

constexpr bool is_float(Operand kind) {
  switch (kind) {
    case Operand::f16:
    case Operand::f32:
    case Operand::f64:
    case Operand::pk_f16:
      return true;
    default:
      return false;
  }
}

}  // namespace uptempo::vgpu::gfx9
