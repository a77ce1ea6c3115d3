// Media and dot-product instructions against host instructions of the same purpose: PSADBW,
// MPSADBW, PAVGB, PSHUFB, PACK*, PMADDWD. All are part of SSE4.1, which every host of the virtual
// GPU has.
#include <smmintrin.h>

#include <algorithm>
#include <random>

#include "gfx9/vector/entry.hpp"
#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/semantics/semantics.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using i64 = int64_t;

#define SSE41 __attribute__((target("sse4.1")))

SSE41 __m128i vector(u64 low) { return _mm_set_epi64x(0, static_cast<i64>(low)); }
SSE41 u64 low64(__m128i v) { return static_cast<u64>(_mm_cvtsi128_si64(v)); }
SSE41 u32 low32(__m128i v) { return static_cast<u32>(_mm_cvtsi128_si32(v)); }

SSE41 u32 sad(u32 a, u32 b) { return low32(_mm_sad_epu8(vector(a), vector(b))); }
// If a byte of the reference is zero, both bytes are set to zero: no difference. cl_amd_media_ops2
// defines amd_msad with the second operand as the reference.
SSE41 u32 masked_sad(u32 a, u32 reference) {
  const __m128i zero = _mm_cmpeq_epi8(vector(reference), _mm_setzero_si128());
  return low32(_mm_sad_epu8(_mm_andnot_si128(zero, vector(a)), vector(reference)));
}
// Four 16-bit sums, of the windows that begin at bytes 0 to 3.
SSE41 __m128i quad(u64 a, u32 b) { return _mm_mpsadbw_epu8(vector(a), vector(b), 0); }
SSE41 u64 masked_quad(u64 a, u32 b) {
  u64 sums = 0;
  for (unsigned i = 0; i < 4; ++i)
    sums |= u64{masked_sad(static_cast<u32>(a >> 8 * i), b)} << 16 * i;
  return sums;
}
SSE41 u64 added16(u64 a, u64 b) { return low64(_mm_add_epi16(vector(a), vector(b))); }
SSE41 u64 saturated16(u64 a, u64 b) { return low64(_mm_adds_epu16(vector(a), vector(b))); }
u64 saturated32(u64 sum) { return std::min<u64>(sum, 0xffffffff); }

// PAVGB rounds up; without the rounding bit an odd sum is one less.
SSE41 u32 lerp(u32 a, u32 b, u32 c) {
  const __m128i one = _mm_set1_epi8(1);
  const __m128i odd = _mm_and_si128(_mm_xor_si128(vector(a), vector(b)), one);
  return low32(_mm_sub_epi8(_mm_avg_epu8(vector(a), vector(b)), _mm_andnot_si128(vector(c), odd)));
}
SSE41 u32 shuffled(u32 a, u32 b, u32 select) {
  return low32(_mm_shuffle_epi8(vector(u64{a} << 32 | b), vector(select & 0x07070707)));
}
SSE41 u32 packed_signed(u32 a, u32 b) {
  return low32(_mm_packs_epi32(vector(a | u64{b} << 32), _mm_setzero_si128()));
}
// PACKUSDW treats its operands as signed.
SSE41 u32 packed_unsigned(u32 a, u32 b) {
  const __m128i both = _mm_min_epu32(vector(a | u64{b} << 32), _mm_set1_epi32(0x7fffffff));
  return low32(_mm_packus_epi32(both, _mm_setzero_si128()));
}
SSE41 u32 packed_bytes(u32 a) { return low32(_mm_packus_epi16(vector(a), _mm_setzero_si128())); }

SSE41 i64 horizontal(__m128i sums) {
  alignas(16) int32_t parts[4];
  _mm_store_si128(reinterpret_cast<__m128i*>(parts), sums);
  return i64{parts[0]} + parts[1] + parts[2] + parts[3];
}
SSE41 i64 dot2_signed(u32 a, u32 b) {
  // PMADDWD wraps for one value only: both pairs -32768 * -32768.
  const i64 sum = horizontal(_mm_madd_epi16(vector(a), vector(b)));
  return a == 0x80008000 && b == 0x80008000 ? i64{1} << 31 : sum;
}
SSE41 i64 dot4_signed(u32 a, u32 b) {
  return horizontal(_mm_madd_epi16(_mm_cvtepi8_epi16(vector(a)), _mm_cvtepi8_epi16(vector(b))));
}
SSE41 i64 dot4_unsigned(u32 a, u32 b) {
  return horizontal(_mm_madd_epi16(_mm_cvtepu8_epi16(vector(a)), _mm_cvtepu8_epi16(vector(b))));
}
// Converts nibbles to bytes by table.
SSE41 __m128i nibbles(u32 v, __m128i table) {
  const __m128i mask = _mm_set1_epi8(15);
  const __m128i even = _mm_and_si128(vector(v), mask),
                odd = _mm_and_si128(_mm_srli_epi16(vector(v), 4), mask);
  return _mm_shuffle_epi8(table, _mm_unpacklo_epi8(even, odd));
}
SSE41 i64 dot8_signed(u32 a, u32 b) {
  const __m128i table = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
  return horizontal(
      _mm_madd_epi16(_mm_cvtepi8_epi16(nibbles(a, table)), _mm_cvtepi8_epi16(nibbles(b, table))));
}
SSE41 i64 dot8_unsigned(u32 a, u32 b) {
  const __m128i table = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return horizontal(
      _mm_madd_epi16(_mm_cvtepi8_epi16(nibbles(a, table)), _mm_cvtepi8_epi16(nibbles(b, table))));
}
u64 clamped(i64 v, i64 low, i64 high) { return static_cast<u64>(std::clamp(v, low, high)); }
constexpr u32 u(u64 v) { return static_cast<u32>(v); }
constexpr i64 s(u64 v) { return static_cast<int32_t>(static_cast<u32>(v)); }

struct HostRow {
  const char* text;
  unsigned result_bits;
  u64 (*expected)(u64 a, u64 b, u64 c, u64 old);
};

// clang-format off
const HostRow kRows[] = {
    {"v_sad_u8 v6, v0, v2, v4",                      32, [](u64 a, u64 b, u64 c, u64) { return sad(u(a), u(b)) + c; }},
    {"v_sad_u8 v6, v0, v2, v4 clamp",                32, [](u64 a, u64 b, u64 c, u64) { return saturated32(u64{sad(u(a), u(b))} + u(c)); }},
    {"v_sad_hi_u8 v6, v0, v2, v4",                   32, [](u64 a, u64 b, u64 c, u64) { return (u64{sad(u(a), u(b))} << 16) + c; }},
    {"v_msad_u8 v6, v0, v2, v4",                     32, [](u64 a, u64 b, u64 c, u64) { return masked_sad(u(a), u(b)) + c; }},
    {"v_qsad_pk_u16_u8 v[6:7], v[0:1], v2, v[4:5]",  64, [](u64 a, u64 b, u64 c, u64) { return added16(low64(quad(a, u(b))), c); }},
    {"v_qsad_pk_u16_u8 v[6:7], v[0:1], v2, v[4:5] clamp",  64, [](u64 a, u64 b, u64 c, u64) { return saturated16(low64(quad(a, u(b))), c); }},
    {"v_mqsad_pk_u16_u8 v[6:7], v[0:1], v2, v[4:5]", 64, [](u64 a, u64 b, u64 c, u64) { return added16(masked_quad(a, u(b)), c); }},
    {"v_mqsad_pk_u16_u8 v[6:7], v[0:1], v2, v[4:5] clamp", 64, [](u64 a, u64 b, u64 c, u64) { return saturated16(masked_quad(a, u(b)), c); }},
    {"v_lerp_u8 v6, v0, v2, v4",                     32, [](u64 a, u64 b, u64 c, u64) { return u64{lerp(u(a), u(b), u(c))}; }},
    {"v_and_b32 v8, 0x07070707, v4\nv_perm_b32 v6, v0, v2, v8", 32, [](u64 a, u64 b, u64 c, u64) { return u64{shuffled(u(a), u(b), u(c))}; }},
    {"v_cvt_pk_i16_i32 v6, v0, v2",                  32, [](u64 a, u64 b, u64, u64) { return u64{packed_signed(u(a), u(b))}; }},
    {"v_cvt_pk_u16_u32 v6, v0, v2",                  32, [](u64 a, u64 b, u64, u64) { return u64{packed_unsigned(u(a), u(b))}; }},
    {"v_sat_pk_u8_i16 v6, v0",                       32, [](u64 a, u64, u64, u64) { return u64{packed_bytes(u(a))}; }},
    {"v_dot2_i32_i16 v6, v0, v2, v4",                32, [](u64 a, u64 b, u64 c, u64) { return static_cast<u64>(dot2_signed(u(a), u(b)) + s(c)); }},
    {"v_dot2_i32_i16 v6, v0, v2, v4 clamp",          32, [](u64 a, u64 b, u64 c, u64) { return clamped(dot2_signed(u(a), u(b)) + s(c), INT32_MIN, INT32_MAX); }},
    {"v_dot4_i32_i8 v6, v0, v2, v4",                 32, [](u64 a, u64 b, u64 c, u64) { return static_cast<u64>(dot4_signed(u(a), u(b)) + s(c)); }},
    {"v_dot4_i32_i8 v6, v0, v2, v4 clamp",           32, [](u64 a, u64 b, u64 c, u64) { return clamped(dot4_signed(u(a), u(b)) + s(c), INT32_MIN, INT32_MAX); }},
    {"v_dot4_u32_u8 v6, v0, v2, v4",                 32, [](u64 a, u64 b, u64 c, u64) { return static_cast<u64>(dot4_unsigned(u(a), u(b)) + u(c)); }},
    {"v_dot4_u32_u8 v6, v0, v2, v4 clamp",           32, [](u64 a, u64 b, u64 c, u64) { return saturated32(static_cast<u64>(dot4_unsigned(u(a), u(b))) + u(c)); }},
    {"v_dot8_i32_i4 v6, v0, v2, v4",                 32, [](u64 a, u64 b, u64 c, u64) { return static_cast<u64>(dot8_signed(u(a), u(b)) + s(c)); }},
    {"v_dot8_i32_i4 v6, v0, v2, v4 clamp",           32, [](u64 a, u64 b, u64 c, u64) { return clamped(dot8_signed(u(a), u(b)) + s(c), INT32_MIN, INT32_MAX); }},
    {"v_dot8_u32_u4 v6, v0, v2, v4",                 32, [](u64 a, u64 b, u64 c, u64) { return static_cast<u64>(dot8_unsigned(u(a), u(b)) + u(c)); }},
    {"v_dot8_u32_u4 v6, v0, v2, v4 clamp",           32, [](u64 a, u64 b, u64 c, u64) { return saturated32(static_cast<u64>(dot8_unsigned(u(a), u(b))) + u(c)); }},
    {"v_dot2c_i32_i16 v6, v0, v2",                   32, [](u64 a, u64 b, u64, u64 old) { return static_cast<u64>(dot2_signed(u(a), u(b)) + s(old)); }},
    {"v_dot4c_i32_i8 v6, v0, v2",                    32, [](u64 a, u64 b, u64, u64 old) { return static_cast<u64>(dot4_signed(u(a), u(b)) + s(old)); }},
    {"v_dot8c_i32_i4 v6, v0, v2",                    32, [](u64 a, u64 b, u64, u64 old) { return static_cast<u64>(dot8_signed(u(a), u(b)) + s(old)); }},
};
// clang-format on

// Includes bytes and halves at their limits, equal ones, and zeros.
u64 number(std::mt19937_64& random) {
  constexpr u64 kEdges[] = {0,
                            0xffffffffffffffff,
                            0x8080808080808080,
                            0x7f7f7f7f7f7f7f7f,
                            0x8000800080008000,
                            0x7fff7fff7fff7fff,
                            0x00ff00ff00ff00ff,
                            0xff00ff00ff00ff00,
                            0x80000000,
                            0x7fffffff,
                            0x7fffffff80000000,
                            0x0000ffff00010000,
                            0xfffefffffffeffff,
                            0x0100010001000100};
  if (random() % 3 == 0) return kEdges[random() % std::size(kEdges)];
  u64 value = random();
  for (unsigned at = 0; at < 64; at += 8) {
    if (random() % 6 == 0) value &= ~(u64{0xff} << at);
  }
  return value;
}

void check(const HostRow& row, LaneBench& bench, std::mt19937_64& random) {
  for (unsigned round = 0; round < 40; ++round) {
    u64 x[4][kLanes];
    for (unsigned n = 0; n < 4; ++n) {
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        x[n][lane] = n == 1 && random() % 5 == 0 ? x[0][lane] : number(random);
        bench.registers[2 * n].lane[lane] = static_cast<u32>(x[n][lane]);
        bench.registers[2 * n + 1].lane[lane] = static_cast<u32>(x[n][lane] >> 32);
      }
    }
    bench.run(row.text);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      u64 got = bench.registers[6].lane[lane],
          want = row.expected(x[0][lane], x[1][lane], x[2][lane], x[3][lane]);
      if (row.result_bits == 64) got |= u64{bench.registers[7].lane[lane]} << 32;
      if (row.result_bits == 32) want &= 0xffffffff;
      if (got != want) {
        CAPTURE(row.text, x[0][lane], x[1][lane], x[2][lane], x[3][lane]);
        CHECK(got == want);
        return;
      }
    }
  }
  SUCCEED(row.text);
}

}  // namespace

TEST_CASE("media and dot-product instructions give what the host's own instructions give") {
  LaneBench bench;
  std::mt19937_64 random(8);
  for (const HostRow& row : kRows) check(row, bench, random);
}

TEST_CASE("v_mqsad_u32_u8 gives four masked 32-bit sums") {
  LaneBench bench;
  std::mt19937_64 random(9);
  for (const bool clamp : {false, true}) {
    for (unsigned round = 0; round < 40; ++round) {
      u64 a[kLanes], b[kLanes];
      u32 c[4][kLanes];
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        a[lane] = number(random), b[lane] = number(random);
        bench.registers[0].lane[lane] = u(a[lane]);
        bench.registers[1].lane[lane] = u(a[lane] >> 32);
        bench.registers[2].lane[lane] = u(b[lane]);
        for (unsigned i = 0; i < 4; ++i)
          c[i][lane] = bench.registers[4 + i].lane[lane] = u(number(random));
      }
      bench.run(std::string("v_mqsad_u32_u8 v[8:11], v[0:1], v2, v[4:7]") +
                (clamp ? " clamp" : ""));
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        for (unsigned i = 0; i < 4; ++i) {
          const u64 sum = u64{masked_sad(u(a[lane] >> 8 * i), u(b[lane]))} + c[i][lane];
          REQUIRE(bench.registers[8 + i].lane[lane] == (clamp ? saturated32(sum) : u(sum)));
        }
      }
    }
  }
}

}  // namespace uptempo::vgpu::gfx9::test
