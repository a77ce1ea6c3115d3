// The handler for every form of an instruction without a fast handler. It stages each operand, runs
// the entry's core on all lanes, and writes the result back. Cost: about 10 to 40 ns.
#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/vector/general.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>
#include <cstring>

#include "gfx9/vector/staging-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {

const Table& target_table();

namespace {

// MODE.ieee off: min and max treat a signalling NaN like any other NaN, so the cores get it as a
// quiet one.
void quiet(Type type, Pair& room, const uint32_t* (&src)[2]) noexcept {
  const unsigned half = type == Type::f64 ? 1 : 0;
  const uint32_t exponent = type == Type::f32   ? 0x7f800000u
                            : type == Type::f64 ? 0x7ff00000u
                                                : 0x7c00u;
  const uint32_t bit = type == Type::f32 ? 0x400000u : type == Type::f64 ? 0x80000u : 0x200u;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const uint32_t x = src[half][lane];
    const bool rest = (x & (bit * 2 - 1)) != 0 || (type == Type::f64 && src[0][lane] != 0);
    room.half[half].lane[lane] = (x & exponent) == exponent && rest ? x | bit : x;
  }
  src[half] = room.half[half].lane;
}

void run_core(const Wave& wave, const Entry& entry, Core core, Lanes& lanes) noexcept {
  Pair quieted[3];
  if ((entry.flags & kIeee) && !(wave.mode & kModeIeee)) {
    for (unsigned i = 0; i < entry.sources; ++i) quiet(entry.source[i], quieted[i], lanes.src[i]);
  }
  const FloatMode float_mode(wave.mode, entry);
  core(lanes);
}

const Op* plain(const Op& op, Wave& wave, const Entry& entry, Core core) {
  const Instruction& in = op.in;
  const uint64_t exec = wave.exec();
  uint64_t write = exec;
  Pair room[3];
  Pair result;
  Lanes lanes;
  lanes.dst[0] = result.half[0].lane;
  lanes.dst[1] = result.half[1].lane;
  for (unsigned i = 0; i < entry.sources; ++i)
    stage_source(wave, in, i, entry.source[i], room[i], lanes, write);
  if (entry.mask_source == 2) lanes.mask_in = scalar_operand(wave, in, 2, Type::u64);
  if (entry.mask_source == 3) lanes.mask_in = wave.vcc();
  run_core(wave, entry, core, lanes);
  if (entry.result == Type::bit) {
    wave.set_pair(in.dst, lanes.mask_out & write);
    if (entry.flags & kWritesExec) wave.set_exec(lanes.mask_out & write);
    return next(op);
  }
  if (is_float(entry.result) && !(entry.flags & kExact))
    modify_result(wave, in, entry.result, result);
  if (entry.result == Type::f16) clamp_overflow(wave, entry, lanes, result.half[0]);
  write_result(wave, in, entry.result, (entry.flags & kKeepsHigh) != 0, result, write);
  // A lane that DPP disables is treated like one that EXEC disables: its bit of a mask is 0. (In
  // the manuals row_mask and bank_mask affect "the VGPR destination write only". For VOPC the bit
  // of a disabled lane receives zero. For a carry they state nothing.)
  if (entry.carry_out) wave.set_pair(in.sdst, lanes.mask_out & write);
  return next(op);
}

// Both halves of packed 16-bit values, or both registers of packed float32.
const Op* packed(const Op& op, Wave& wave, const Entry& entry, Core core) {
  Instruction in = op.in;
  if (in.format != Format::vop3p) {  // VOP2 v_pk_fmac_f16: no selects
    in.op_sel = 0;
    in.op_sel_hi = 7;
  }
  const bool dwords = entry.packing == Packing::dwords;
  Pair room[3];
  Pair result;
  Lanes raw;
  for (unsigned i = 0; i < entry.sources; ++i) {
    stage_raw(
        wave, in, i,
        dwords && (is_vgpr(in.src[i]) || in.src[i] < kFirstConstant) ? Type::u64 : entry.source[i],
        room[i], raw);
    if (dwords && !is_vgpr(in.src[i]) && in.src[i] >= kFirstConstant) raw.src[i][1] = raw.src[i][0];
  }
  for (unsigned h = 0; h < 2; ++h) {
    const unsigned select = h == 0 ? in.op_sel : in.op_sel_hi;
    const unsigned negate = h == 0 ? in.neg : in.neg_hi;
    Pair operand[3];
    Lanes lanes;
    Vgpr& out = result.half[h];
    lanes.dst[0] = out.lane;
    for (unsigned i = 0; i < entry.sources; ++i) {
      const uint32_t* const from = raw.src[i][dwords && (select >> i & 1) ? 1 : 0];
      const unsigned shift = !dwords && (select >> i & 1) ? 16 : 0;
      const uint32_t sign = !(negate >> i & 1) ? 0u : dwords ? 0x80000000u : 0x8000u;
      const bool flushed = entry.source[i] == Type::f16 && (wave.mode & 0x40) == 0;
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        const uint32_t x = (from[lane] >> shift) ^ sign;
        operand[i].half[0].lane[lane] = flushed && (x & 0x7c00u) == 0 ? x & 0x8000u : x;
      }
      lanes.src[i][0] = operand[i].half[0].lane;
    }
    run_core(wave, entry, core, lanes);
    if (is_float(entry.result)) {
      Pair half{{out, out}};
      modify_result(wave, in, entry.result, half);
      out = half.half[0];
    }
    if (entry.result == Type::f16) clamp_overflow(wave, entry, lanes, out);
  }
  if (!dwords) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      result.half[0].lane[lane] = (result.half[0].lane[lane] & 0xffffu) | result.half[1].lane[lane]
                                                                              << 16;
    }
  }
  write_result(wave, in, dwords ? Type::u64 : Type::u32, false, result, wave.exec());
  return next(op);
}

// Pairs of halves. op_sel selects the half of the register that is the low one of a pair, op_sel_hi
// the high one. neg and neg_hi are their signs.
const Op* paired(const Op& op, Wave& wave, const Entry& entry, Core core) {
  const Instruction& in = op.in;
  Pair room[3];
  Pair result;
  Lanes lanes;
  lanes.dst[0] = result.half[0].lane;
  const bool flushes = is_float(entry.result) && (wave.mode & 0x40) == 0;
  for (unsigned i = 0; i < 2; ++i) {
    stage_raw(wave, in, i, Type::f16, room[i], lanes);
    const unsigned low = (in.op_sel >> i & 1) * 16u, high = (in.op_sel_hi >> i & 1) * 16u;
    const uint32_t flip_low = (in.neg >> i & 1) ? 0x8000u : 0u,
                   flip_high = (in.neg_hi >> i & 1) ? 0x8000u : 0u;
    Vgpr& to = room[i].half[1];
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const uint32_t x = lanes.src[i][0][lane];
      uint32_t a = (x >> low & 0xffffu) ^ flip_low, b = (x >> high & 0xffffu) ^ flip_high;
      if (flushes && (a & 0x7c00u) == 0) a &= 0x8000u;
      if (flushes && (b & 0x7c00u) == 0) b &= 0x8000u;
      to.lane[lane] = a | b << 16;
    }
    lanes.src[i][0] = to.lane;
  }
  stage_raw(wave, in, 2, entry.source[2], room[2], lanes);
  if (in.neg >> 2 & 1) {
    for (unsigned lane = 0; lane < kLanes; ++lane)
      room[2].half[1].lane[lane] = lanes.src[2][0][lane] ^ 0x80000000u;
    lanes.src[2][0] = room[2].half[1].lane;
  }
  run_core(wave, entry, core, lanes);
  if (is_float(entry.result)) modify_result(wave, in, entry.result, result);
  write_result(wave, in, entry.result, false, result, wave.exec());
  return next(op);
}

// Each source is float32 or one half of it as float16. neg_hi means abs. Source: LLVM, VOP3P mix
// modifiers.
const Op* mixed(const Op& op, Wave& wave, const Entry& entry) {
  const Instruction& in = op.in;
  Pair room[3];
  Pair operand[3];
  Pair result;
  Lanes lanes;
  lanes.dst[0] = result.half[0].lane;
  for (unsigned i = 0; i < 3; ++i) {
    const bool half = (in.op_sel_hi >> i & 1) != 0;
    stage_raw(wave, in, i, half ? Type::f16 : Type::f32, room[i], lanes);
    const uint32_t keep = ((in.neg_hi | in.abs) >> i & 1) ? 0x7fffffffu : ~0u;
    const uint32_t flip = (in.neg >> i & 1) ? 0x80000000u : 0u;
    const unsigned shift = (in.op_sel >> i & 1) ? 16 : 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      uint32_t x = lanes.src[i][0][lane];
      if (half) {
        const float value = half_value(x >> shift & 0xffffu);
        std::memcpy(&x, &value, sizeof x);
      }
      operand[i].half[0].lane[lane] = (x & keep) ^ flip;
    }
    lanes.src[i][0] = operand[i].half[0].lane;
  }
  run_core(wave, entry, entry.core, lanes);
  modify_result(wave, in, Type::f32, result);
  if (entry.packing == Packing::mix) {
    write_result(wave, in, Type::u32, false, result, wave.exec());
    return next(op);
  }
  Entry to_half = entry;
  to_half.result = Type::f16;
  const FloatMode float_mode(wave.mode, to_half);
  Vgpr& halves = result.half[0];
  for (uint32_t& lane : halves.lane) {
    float value;
    std::memcpy(&value, &lane, sizeof value);
    lane = half_of(value);
  }
  clamp_overflow(wave, entry, lanes, halves);
  const bool high = entry.packing == Packing::mix_high;
  const Vgpr& old = wave.vgpr[in.dst];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    halves.lane[lane] = high ? halves.lane[lane] << 16 | (old.lane[lane] & 0xffffu)
                             : halves.lane[lane] | (old.lane[lane] & 0xffff0000u);
  }
  write_result(wave, in, Type::u32, false, result, wave.exec());
  return next(op);
}

}  // namespace

const Op* general(const Op& op, Wave& wave) {
  const Entry& entry = target_table()[static_cast<size_t>(op.in.opcode)];
  const Core core = op.in.clamp && entry.saturating != nullptr   ? entry.saturating
                    : op.in.flushes && entry.flushing != nullptr ? entry.flushing
                                                                 : entry.core;
  switch (entry.packing) {
    case Packing::none:
      return plain(op, wave, entry, core);
    case Packing::halves:
    case Packing::dwords:
      return packed(op, wave, entry, core);
    case Packing::pairs:
      return paired(op, wave, entry, core);
    default:
      return mixed(op, wave, entry);
  }
}

}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
