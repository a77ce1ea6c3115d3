#include "gfx9/vector/staging.hpp"

#include <immintrin.h>

#include <bit>
#include <cstring>

#include "gfx9/vector/half.hpp"

namespace uptempo::vgpu::gfx9::vector {
namespace {

// 0.5, -0.5, 1, -1, 2, -2, 4, -4, 1/(2 pi): operand codes 240..248.
constexpr std::uint16_t kHalf[9] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118};
constexpr std::uint64_t kDouble[9] = {0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000,
                                      0xbff0000000000000, 0x4000000000000000, 0xc000000000000000,
                                      0x4010000000000000, 0xc010000000000000, 0x3fc45f306dc9c882};

constexpr unsigned kVccz = 251, kExecz = 252, kScc = 253;

bool exec_bit(std::uint64_t mask, unsigned lane) noexcept { return (mask >> lane & 1) != 0; }

template <class F>
void each(Vgpr& v, F f) noexcept {
  for (std::uint32_t& x : v.lane) x = f(x);
}

void flush(Vgpr& lo, Vgpr* hi, Type type) noexcept {
  if (type == Type::f32)
    each(lo, [](std::uint32_t x) { return (x & 0x7f800000u) == 0 ? x & 0x80000000u : x; });
  if (type == Type::f16) each(lo, [](std::uint32_t x) { return (x & 0x7c00u) == 0 ? x & 0xffff8000u : x; });
  if (type == Type::f64) {
    for (unsigned i = 0; i < kLanes; ++i) {
      if ((hi->lane[i] & 0x7ff00000u) == 0) hi->lane[i] &= 0x80000000u, lo.lane[i] = 0;
    }
  }
}

template <class T>
T clamped(T x, bool nan_to_zero) noexcept {
  if (x != x) return nan_to_zero ? T{0} : x;
  return x > T{0} ? (x < T{1} ? x : T{1}) : T{0};
}

}  // namespace

std::uint64_t scalar_operand(const Wave& wave, const Instruction& in, unsigned index, Type type) noexcept {
  const unsigned code = in.src[index];
  const bool wide = is_wide(type);
  if (code == kLiteral) {
    if (type == Type::f64) return static_cast<std::uint64_t>(in.literal) << 32;
    if (type == Type::i64)
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(in.literal)));
    return in.literal;
  }
  if (code >= 240 && code <= 248) {
    if (wide) return kDouble[code - 240];
    return is_short(type) ? kHalf[code - 240] : wave.scalar[code];
  }
  switch (code) {
    case kVccz:
      return wave.vcc() == 0;
    case kExecz:
      return wave.exec() == 0;
    case kScc:
      return wave.scc;
    default:
      break;
  }
  if (!wide) return wave.scalar[code];
  if (code < 128) return wave.pair(code);
  // An aperture is the high half of an address; an integer constant is sign-extended.
  if (code >= 235 && code <= 239) return static_cast<std::uint64_t>(wave.scalar[code]) << 32;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(wave.scalar[code])));
}

bool dpp_lanes(std::uint32_t control, std::int8_t (&lanes)[kLanes]) noexcept {
  for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
    const int row = lane & ~15;
    const int in_row = lane & 15;
    const int count = static_cast<int>(control & 15u);
    int from = -1;
    if (control <= 0xff) {
      from = (lane & ~3) | static_cast<int>(control >> (2 * (lane & 3)) & 3u);
    } else if (control > 0x100 && control <= 0x10f) {  // row_shl
      if (in_row + count < 16) from = lane + count;
    } else if (control > 0x110 && control <= 0x11f) {  // row_shr
      if (in_row >= count) from = lane - count;
    } else if (control > 0x120 && control <= 0x12f) {  // row_ror
      from = row | ((in_row - count) & 15);
    } else if (control == 0x130) {  // wave_shl
      if (lane < 63) from = lane + 1;
    } else if (control == 0x134) {  // wave_rol
      from = (lane + 1) & 63;
    } else if (control == 0x138) {  // wave_shr
      from = lane - 1;
    } else if (control == 0x13c) {  // wave_ror
      from = (lane - 1) & 63;
    } else if (control == 0x140) {  // row_mirror
      from = row | (15 - in_row);
    } else if (control == 0x141) {  // row_half_mirror
      from = (lane & ~7) | (7 - (lane & 7));
    } else if (control == 0x142) {  // row_bcast15: the last lane of each row to the next row
      if (lane > 15) from = row - 1;
    } else if (control == 0x143) {  // row_bcast31: lane 31 to rows 2 and 3
      if (lane > 31) from = 31;
    } else if (control >= 0x150 && control <= 0x15f) {  // row_newbcast, gfx90a
      from = row | count;
    } else {
      return false;
    }
    lanes[lane] = static_cast<std::int8_t>(from);
  }
  return true;
}

void stage_raw(const Wave& wave, const Instruction& in, unsigned i, Type type, Pair& room,
               Lanes& lanes) noexcept {
  if (is_vgpr(in.src[i])) {
    const Vgpr* const v = wave.vgpr + (in.src[i] - kFirstVgpr);
    lanes.src[i][0] = v[0].lane;
    lanes.src[i][1] = is_wide(type) ? v[1].lane : v[0].lane;
    return;
  }
  const std::uint64_t value = scalar_operand(wave, in, i, type);
  each(room.half[0], [&](std::uint32_t) { return static_cast<std::uint32_t>(value); });
  if (is_wide(type))
    each(room.half[1], [&](std::uint32_t) { return static_cast<std::uint32_t>(value >> 32); });
  lanes.src[i][0] = room.half[0].lane;
  lanes.src[i][1] = room.half[1].lane;
}

void stage_source(const Wave& wave, const Instruction& in, unsigned i, Type type, Pair& room, Lanes& lanes,
                  std::uint64_t& write) noexcept {
  stage_raw(wave, in, i, type, room, lanes);
  const unsigned halves = is_wide(type) ? 2 : 1;
  Vgpr& lo = room.half[0];
  Vgpr& sign_half = room.half[halves - 1];
  const auto own = [&] {
    for (unsigned h = 0; h < halves; ++h) {
      if (lanes.src[i][h] != room.half[h].lane) std::memcpy(room.half[h].lane, lanes.src[i][h], sizeof(Vgpr));
      lanes.src[i][h] = room.half[h].lane;
    }
  };

  if (in.modifier == OperandModifier::dpp && i == 0) {
    std::int8_t from[kLanes];
    dpp_lanes(in.dpp.control, from);
    const std::uint64_t exec = wave.exec();
    std::uint64_t valid = 0, enabled = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      // A source lane that EXEC disables counts as out of range: gfx9 has no fetch-inactive bit.
      const bool ok = from[lane] >= 0 && exec_bit(exec, static_cast<unsigned>(from[lane]));
      valid |= static_cast<std::uint64_t>(ok) << lane;
      const bool on = (in.dpp.row_mask >> (lane / 16) & 1) && (in.dpp.bank_mask >> (lane % 16 / 4) & 1);
      enabled |= static_cast<std::uint64_t>(on) << lane;
      if (!ok) from[lane] = static_cast<std::int8_t>(lane);
    }
    write &= enabled;
    if (!in.dpp.bound_ctrl) write &= valid;
    for (unsigned h = 0; h < halves; ++h) {
      Vgpr permuted;
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        permuted.lane[lane] = exec_bit(valid, lane) ? lanes.src[i][h][static_cast<unsigned>(from[lane])] : 0;
      }
      room.half[h] = permuted;
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
        each(lo, [&](std::uint32_t x) {
          return static_cast<std::uint32_t>(static_cast<std::int32_t>(x << up) >> unused);
        });
      } else {
        each(lo, [&](std::uint32_t x) { return x << up >> unused; });
      }
    }
  } else if (is_short(type) && (in.format == Format::vop3) && (in.op_sel >> i & 1)) {
    own();
    each(lo, [](std::uint32_t x) { return x >> 16; });
  }

  const std::uint32_t sign = is_short(type) ? 0x8000u : 0x80000000u;
  if (in.abs >> i & 1) {
    own();
    each(sign_half, [&](std::uint32_t x) { return x & ~sign; });
  }
  if (in.neg >> i & 1) {
    own();
    each(sign_half, [&](std::uint32_t x) { return x ^ sign; });
  }
  if (type == Type::f16 && (wave.mode & 0x40) == 0) {
    own();
    flush(lo, nullptr, type);
  }
}

void modify_result(const Wave& wave, const Instruction& in, Type type, Pair& result) noexcept {
  const bool nan_to_zero = (wave.mode & kModeDx10Clamp) != 0;
  const double factor = in.omod == 1 ? 2.0 : in.omod == 2 ? 4.0 : in.omod == 3 ? 0.5 : 1.0;
  Vgpr& lo = result.half[0];
  Vgpr& hi = result.half[1];
  if (factor != 1.0 || in.clamp) {
    const auto modify = [&]<class T>(T x) {
      x *= static_cast<T>(factor);
      return in.clamp ? clamped(x, nan_to_zero) : x;
    };
    if (type == Type::f32)
      each(lo,
           [&](std::uint32_t x) { return std::bit_cast<std::uint32_t>(modify(std::bit_cast<float>(x))); });
    if (type == Type::f16)
      each(lo, [&](std::uint32_t x) { return half_of(modify(half_value(x & 0xffffu))); });
    if (type == Type::f64) {
      for (unsigned i = 0; i < kLanes; ++i) {
        const std::uint64_t bits = lo.lane[i] | static_cast<std::uint64_t>(hi.lane[i]) << 32;
        const std::uint64_t modified = std::bit_cast<std::uint64_t>(modify(std::bit_cast<double>(bits)));
        lo.lane[i] = static_cast<std::uint32_t>(modified);
        hi.lane[i] = static_cast<std::uint32_t>(modified >> 32);
      }
    }
  }
  if ((wave.mode & (type == Type::f32 ? 0x20u : 0x80u)) == 0) flush(lo, &hi, type);
}

void write_result(Wave& wave, const Instruction& in, Type type, bool keeps_high, const Pair& result,
                  std::uint64_t write) noexcept {
  Vgpr* const dst = wave.vgpr + in.dst;
  const auto put = [&](Vgpr& to, auto value) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (exec_bit(write, lane)) to.lane[lane] = value(lane, to.lane[lane]);
    }
  };
  const Vgpr& lo = result.half[0];
  if (is_wide(type)) {
    put(dst[0], [&](unsigned lane, std::uint32_t) { return lo.lane[lane]; });
    put(dst[1], [&](unsigned lane, std::uint32_t) { return result.half[1].lane[lane]; });
  } else if (in.modifier == OperandModifier::sdwa && in.sdwa.dst_sel < 6) {
    const unsigned select = in.sdwa.dst_sel;
    const unsigned at = select < 4 ? select * 8 : (select - 4) * 16;
    const std::uint32_t mask = (select < 4 ? 0xffu : 0xffffu) << at;
    const std::uint32_t top = select < 4 ? 0x80u : 0x8000u;
    const std::uint32_t above = ~(mask | (mask - 1));
    put(dst[0], [&](unsigned lane, std::uint32_t old) {
      const std::uint32_t value = lo.lane[lane] << at & mask;
      if (in.sdwa.dst_unused == 2) return value | (old & ~mask);
      return value | (in.sdwa.dst_unused == 1 && (lo.lane[lane] & top) ? above : 0u);
    });
  } else if (is_short(type) && in.format == Format::vop3 && (in.op_sel & 8)) {
    put(dst[0], [&](unsigned lane, std::uint32_t old) { return lo.lane[lane] << 16 | (old & 0xffffu); });
  } else if (is_short(type) && keeps_high) {
    put(dst[0],
        [&](unsigned lane, std::uint32_t old) { return (lo.lane[lane] & 0xffffu) | (old & 0xffff0000u); });
  } else {
    put(dst[0], [&](unsigned lane, std::uint32_t) { return lo.lane[lane]; });
  }
}

FloatMode::FloatMode(std::uint32_t mode, const Entry& entry) noexcept : before_(_mm_getcsr()), set_(before_) {
  Type type = entry.result;
  bool flush_in = false;
  for (unsigned i = 0; i < entry.sources; ++i) {
    if (!is_float(type)) type = entry.source[i];
    flush_in |= entry.source[i] == Type::f32 && (mode & 0x10) == 0;
    flush_in |= entry.source[i] == Type::f64 && (mode & 0x40) == 0;
  }
  if (!is_float(type) || (entry.flags & kExact)) return;
  const bool flush_out =
      (entry.result == Type::f32 && (mode & 0x20) == 0) || (entry.result == Type::f64 && (mode & 0x80) == 0);
  // MODE counts nearest, up, down, zero; MXCSR nearest, down, up, zero.
  constexpr unsigned kRounding[4] = {0, 2, 1, 3};
  const unsigned rounding = kRounding[(type == Type::f32 ? mode : mode >> 2) & 3];
  set_ = (before_ & ~0xe040u) | rounding << 13 | (flush_out ? 0x8000u : 0u) | (flush_in ? 0x40u : 0u);
  if (set_ != before_) _mm_setcsr(set_);
}

FloatMode::~FloatMode() {
  if (set_ != before_) _mm_setcsr(before_);
}

}  // namespace uptempo::vgpu::gfx9::vector
