// Rare operand forms. Fetches a source as 64 lanes with SDWA, DPP, op_sel, abs and neg applied, and
// writes a result back. Plain loops, which the compiler vectorises for each SIMD target.

// Per-target include guard.
#if defined(UPTEMPO_VGPU_GFX9_STAGING_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef UPTEMPO_VGPU_GFX9_STAGING_INL_HPP
#undef UPTEMPO_VGPU_GFX9_STAGING_INL_HPP
#else
#define UPTEMPO_VGPU_GFX9_STAGING_INL_HPP
#endif

#include <bit>
#include <cstring>

#include "gfx9/vector/half.hpp"
#include "gfx9/vector/lanes-inl.hpp"
#include "gfx9/vector/staging.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {
namespace {

template <class F>
void each(Vgpr& v, F f) noexcept {
  for (uint32_t& x : v.lane) x = f(x);
}

void flush(Vgpr& lo, Vgpr* hi, Type type) noexcept {
  if (type == Type::f32)
    each(lo, [](uint32_t x) { return (x & 0x7f800000u) == 0 ? x & 0x80000000u : x; });
  if (type == Type::f16)
    each(lo, [](uint32_t x) { return (x & 0x7c00u) == 0 ? x & 0xffff8000u : x; });
  if (type == Type::f64) {
    for (unsigned i = 0; i < kLanes; ++i) {
      if ((hi->lane[i] & 0x7ff00000u) == 0) hi->lane[i] &= 0x80000000u, lo.lane[i] = 0;
    }
  }
}

// -0 becomes +0.
void unsign_zeros(Vgpr& lo, Vgpr& hi, Type type) noexcept {
  if (type == Type::f32) each(lo, [](uint32_t x) { return x == 0x80000000u ? 0u : x; });
  if (type == Type::f16) each(lo, [](uint32_t x) { return x == 0x8000u ? 0u : x; });
  if (type == Type::f64) {
    for (unsigned i = 0; i < kLanes; ++i) {
      if (lo.lane[i] == 0 && hi.lane[i] == 0x80000000u) hi.lane[i] = 0;
    }
  }
}

template <class T>
T clamped(T x, bool nan_to_zero) noexcept {
  if (x != x) return nan_to_zero ? T{0} : x;
  return x > T{0} ? (x < T{1} ? x : T{1}) : T{0};
}

// The instruction's sources as registers or broadcast scalars, without modifiers.
void stage_raw(const Wave& wave, const Instruction& in, unsigned i, Type type, Pair& room,
               Lanes& lanes) noexcept {
  if (is_vgpr(in.src[i])) {
    const Vgpr* const v = wave.vgpr + (in.src[i] - kFirstVgpr);
    lanes.src[i][0] = v[0].lane;
    lanes.src[i][1] = is_wide(type) ? v[1].lane : v[0].lane;
    return;
  }
  const uint64_t value = scalar_operand(wave, in, i, type);
  each(room.half[0], [&](uint32_t) { return static_cast<uint32_t>(value); });
  if (is_wide(type))
    each(room.half[1], [&](uint32_t) { return static_cast<uint32_t>(value >> 32); });
  lanes.src[i][0] = room.half[0].lane;
  lanes.src[i][1] = room.half[1].lane;
}

// Lanes that the row and bank masks enable.
uint64_t enabled_lanes(const Dpp& dpp) noexcept {
  uint64_t lanes = 0;
  for (unsigned quad = 0; quad < 16; ++quad) {
    if ((dpp.row_mask >> (quad / 4) & 1) && (dpp.bank_mask >> (quad % 4) & 1))
      lanes |= uint64_t{15} << (4 * quad);
  }
  return lanes;
}

// to = mask ? from : 0, and mask ? from : to.
void blend(Vgpr& to, const Vgpr& from, uint64_t mask) noexcept {
  const D32<false> d;
  for (size_t lane = 0; lane < kLanes; lane += hn::MaxLanes(d)) {
    hn::Store(hn::IfThenElseZero(mask_at(d, mask, lane), hn::Load(d, from.lane + lane)), d,
              to.lane + lane);
  }
}
void put(Vgpr& to, const Vgpr& from, uint64_t mask) noexcept {
  const D32<false> d;
  for (size_t lane = 0; lane < kLanes; lane += hn::MaxLanes(d))
    store<false>(d, hn::Load(d, from.lane + lane), mask, to.lane, lane);
}

// Stages source i of `in` as type `type`: sets `lanes.src[i]`, and uses `room` where the register
// itself is not usable. Removes lanes that DPP disables from `write`.
void stage_source(const Wave& wave, const Instruction& in, unsigned i, Type type, Pair& room,
                  Lanes& lanes, uint64_t& write) noexcept {
  stage_raw(wave, in, i, type, room, lanes);
  const unsigned halves = is_wide(type) ? 2 : 1;
  Vgpr& lo = room.half[0];
  Vgpr& sign_half = room.half[halves - 1];
  const auto own = [&] {
    for (unsigned h = 0; h < halves; ++h) {
      if (lanes.src[i][h] != room.half[h].lane)
        std::memcpy(room.half[h].lane, lanes.src[i][h], sizeof(Vgpr));
      lanes.src[i][h] = room.half[h].lane;
    }
  };

  if (in.modifier == OperandModifier::dpp && i == 0) {
    const DppPattern& pattern = *dpp_pattern(in.dpp.control);
    const uint64_t exec = wave.exec();
    uint64_t valid = pattern.valid;
    if (exec != ~uint64_t{0}) {
      // A source lane that EXEC disables counts as out of range: gfx9 has no fetch-inactive bit.
      uint64_t active = 0;
      for (unsigned lane = 0; lane < kLanes; ++lane)
        active |= (exec >> pattern.from[lane] & 1) << lane;
      valid &= active;
    }
    write &= enabled_lanes(in.dpp);
    if (!in.dpp.bound_ctrl) write &= valid;
    for (unsigned h = 0; h < halves; ++h) {
      Vgpr permuted;
      for (unsigned lane = 0; lane < kLanes; ++lane)
        permuted.lane[lane] = lanes.src[i][h][pattern.from[lane]];
      blend(room.half[h], permuted, valid);
      lanes.src[i][h] = room.half[h].lane;
    }
  }

  if (in.modifier == OperandModifier::sdwa && i < 2) {
    const unsigned select = i == 0 ? in.sdwa.src0_sel : in.sdwa.src1_sel;
    const bool sext = (i == 0 ? in.sdwa.src0_sext : in.sdwa.src1_sext) != 0;
    if (select < 6) {
      own();
      const unsigned down = select < 4 ? select * 8 : (select - 4) * 16;
      const unsigned unused = select < 4 ? 24 : 16;
      const unsigned up = unused - down;
      if (sext) {
        each(lo, [&](uint32_t x) {
          return static_cast<uint32_t>(static_cast<int32_t>(x << up) >> unused);
        });
      } else {
        each(lo, [&](uint32_t x) { return x << up >> unused; });
      }
    }
  } else if (is_short(type) && (in.format == Format::vop3) && (in.op_sel >> i & 1)) {
    own();
    each(lo, [](uint32_t x) { return x >> 16; });
  }

  const uint32_t sign = is_short(type) ? 0x8000u : 0x80000000u;
  if (in.abs >> i & 1) {
    own();
    each(sign_half, [&](uint32_t x) { return x & ~sign; });
  }
  if (in.neg >> i & 1) {
    own();
    each(sign_half, [&](uint32_t x) { return x ^ sign; });
  }
  if (type == Type::f16 && (wave.mode & 0x40) == 0) {
    own();
    flush(lo, nullptr, type);
  }
}

// omod, clamp and denormal flushing of a float result. omod works only where denormals are flushed
// and MODE.ieee is off, and turns a negative zero into a positive one ("Output modifiers are not
// compatible with output denormals", Vega, CDNA and RDNA ISA manuals, "Instruction Outputs").
void modify_result(const Wave& wave, const Instruction& in, Type type, Pair& result) noexcept {
  const bool nan_to_zero = (wave.mode & kModeDx10Clamp) != 0;
  const bool flushes = (wave.mode & (type == Type::f32 ? 0x20u : 0x80u)) == 0;
  const bool scales = in.omod != 0 && flushes && (wave.mode & kModeIeee) == 0;
  const double factor = !scales ? 1.0 : in.omod == 1 ? 2.0 : in.omod == 2 ? 4.0 : 0.5;
  Vgpr& lo = result.half[0];
  Vgpr& hi = result.half[1];
  if (scales || in.clamp) {
    const auto modify = [&]<class T>(T x) {
      x *= static_cast<T>(factor);
      return in.clamp ? clamped(x, nan_to_zero) : x;
    };
    if (type == Type::f32)
      each(lo,
           [&](uint32_t x) { return std::bit_cast<uint32_t>(modify(std::bit_cast<float>(x))); });
    if (type == Type::f16)
      each(lo, [&](uint32_t x) { return half_of(modify(half_value(x & 0xffffu))); });
    if (type == Type::f64) {
      for (unsigned i = 0; i < kLanes; ++i) {
        const uint64_t bits = lo.lane[i] | static_cast<uint64_t>(hi.lane[i]) << 32;
        const uint64_t modified = std::bit_cast<uint64_t>(modify(std::bit_cast<double>(bits)));
        lo.lane[i] = static_cast<uint32_t>(modified);
        hi.lane[i] = static_cast<uint32_t>(modified >> 32);
      }
    }
  }
  if (flushes) flush(lo, &hi, type);
  if (scales) unsign_zeros(lo, hi, type);
}

// MODE.FP16_OVFL: a float16 result that overflowed becomes the largest number of its sign, whatever
// the rounding. Infinite sources and divisions by zero still give infinities (LLVM AMDGPUUsage,
// COMPUTE_PGM_RSRC1.FP16_OVFL). `lanes` has the operands from which `result` was computed.
void clamp_overflow(const Wave& wave, const Entry& entry, const Lanes& lanes,
                    Vgpr& result) noexcept {
  if ((wave.mode & kModeFp16Ovfl) == 0) return;
  const unsigned divisor = entry.sources > 1 ? 1 : 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    uint32_t& x = result.lane[lane];
    if ((x & 0x7fffu) != 0x7c00u) continue;
    bool infinite = (entry.flags & kDivides) && (lanes.src[divisor][0][lane] & 0x7fffu) == 0;
    for (unsigned i = 0; i < entry.sources; ++i) {
      const uint32_t source = lanes.src[i][0][lane];
      infinite |= (entry.source[i] == Type::f16 && (source & 0x7fffu) == 0x7c00u) ||
                  (entry.source[i] == Type::f32 && (source & 0x7fffffffu) == 0x7f800000u);
    }
    if (!infinite) --x;
  }
}

// Writes the lanes of `write`, with SDWA selects, op_sel's high half and 16-bit results.
void write_result(Wave& wave, const Instruction& in, Type type, bool keeps_high, const Pair& result,
                  uint64_t write) noexcept {
  Vgpr* const dst = wave.vgpr + in.dst;
  const Vgpr& lo = result.half[0];
  const auto put_each = [&](auto value) {
    Vgpr merged;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      merged.lane[lane] = value(lo.lane[lane], dst->lane[lane]);
    put(*dst, merged, write);
  };
  if (is_wide(type)) {
    put(dst[0], lo, write);
    put(dst[1], result.half[1], write);
  } else if (in.modifier == OperandModifier::sdwa && in.sdwa.dst_sel < 6) {
    const unsigned select = in.sdwa.dst_sel;
    const unsigned at = select < 4 ? select * 8 : (select - 4) * 16;
    const uint32_t mask = (select < 4 ? 0xffu : 0xffffu) << at;
    const uint32_t top = select < 4 ? 0x80u : 0x8000u;
    // The value of the unused bits above when the value's top bit is set, and the bits that are
    // kept.
    const uint32_t above = in.sdwa.dst_unused == 1 ? ~(mask | (mask - 1)) : 0u;
    const uint32_t kept = in.sdwa.dst_unused == 2 ? ~mask : 0u;
    put_each([=](uint32_t x, uint32_t old) {
      return (x << at & mask) | (old & kept) | ((x & top) != 0 ? above : 0u);
    });
  } else if (is_short(type) && in.format == Format::vop3 && (in.op_sel & 8)) {
    put_each([](uint32_t x, uint32_t old) { return x << 16 | (old & 0xffffu); });
  } else if (is_short(type) && keeps_high) {
    put_each([](uint32_t x, uint32_t old) { return (x & 0xffffu) | (old & 0xffff0000u); });
  } else {
    put(dst[0], lo, write);
  }
}

}  // namespace
}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
