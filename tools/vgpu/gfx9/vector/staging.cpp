#include "gfx9/vector/staging.hpp"

#include <immintrin.h>

#include <bit>
#include <cstring>

#include "gfx9/vector/half.hpp"

namespace uptempo::vgpu::gfx9::vector {
namespace {

struct DppSource {
  int lane;  // -1: out of range
  bool defined;
};
DppSource dpp_source(uint32_t control, int lane) noexcept {
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
    return {0, false};
  }
  return {from, true};
}

}  // namespace

uint64_t scalar_operand(const Wave& wave, const Instruction& in, unsigned index,
                        Type type) noexcept {
  const unsigned code = in.src[index];
  const bool wide = is_wide(type);
  if (code == kLiteral) {
    if (type == Type::f64) return static_cast<uint64_t>(in.literal) << 32;
    if (type == Type::i64)
      return static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(in.literal)));
    return in.literal;
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
  return code < kFirstConstant ? wave.pair(code) : constant64(code);
}

const DppPattern* dpp_pattern(uint32_t control) noexcept {
  constexpr uint32_t kControls = 0x160;
  struct Patterns {
    DppPattern pattern[kControls];
    bool defined[kControls];
  };
  static const auto* const kPatterns = [] {
    static Patterns patterns;
    for (uint32_t c = 0; c < kControls; ++c) {
      patterns.defined[c] = false;
      for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
        const DppSource source = dpp_source(c, lane);
        patterns.defined[c] |= source.defined;
        const bool valid = source.defined && source.lane >= 0;
        patterns.pattern[c].from[lane] = static_cast<uint32_t>(valid ? source.lane : lane);
        patterns.pattern[c].valid |= static_cast<uint64_t>(valid) << lane;
      }
    }
    return &patterns;
  }();
  return control < kControls && kPatterns->defined[control] ? &kPatterns->pattern[control]
                                                            : nullptr;
}

FloatMode::FloatMode(uint32_t mode, const Entry& entry) noexcept
    : before_(_mm_getcsr()), set_(before_) {
  Type type = entry.result;
  bool flush_in = false;
  for (unsigned i = 0; i < entry.sources; ++i) {
    if (!is_float(type)) type = entry.source[i];
    flush_in |= entry.source[i] == Type::f32 && (mode & 0x10) == 0;
    flush_in |= entry.source[i] == Type::f64 && (mode & 0x40) == 0;
  }
  if (!is_float(type) || (entry.flags & kExact)) return;
  const bool flush_out = (entry.result == Type::f32 && (mode & 0x20) == 0) ||
                         (entry.result == Type::f64 && (mode & 0x80) == 0);
  // Order in MODE: nearest, up, down, zero. Order in MXCSR: nearest, down, up, zero.
  constexpr unsigned kRounding[4] = {0, 2, 1, 3};
  const unsigned rounding = kRounding[(type == Type::f32 ? mode : mode >> 2) & 3];
  set_ =
      (before_ & ~0xe040u) | rounding << 13 | (flush_out ? 0x8000u : 0u) | (flush_in ? 0x40u : 0u);
  if (set_ != before_) _mm_setcsr(set_);
}

FloatMode::~FloatMode() {
  if (set_ != before_) _mm_setcsr(before_);
}

}  // namespace uptempo::vgpu::gfx9::vector
