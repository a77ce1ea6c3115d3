// Scalar instructions against the instruction set document: inputs s[0:1] and s[2:3], results
// s[6:7] and SCC.
#include <bit>
#include <random>
#include <string>

#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/semantics/semantics.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u64 = uint64_t;
using u32 = uint32_t;
using i64 = int64_t;
using i32 = int32_t;

struct Scalar {
  u64 a, b, old;
  bool scc;
};
struct Result {
  u64 value;
  bool scc;
};

struct ScalarRow {
  const char* text;
  unsigned bits;  // of the result; 0: SCC only
  Result (*reference)(const Scalar& x);
};

constexpr u32 u(u64 v) { return static_cast<u32>(v); }
constexpr i32 s(u64 v) { return static_cast<i32>(static_cast<u32>(v)); }
constexpr bool overflows(i64 v) { return v != static_cast<i32>(v); }

// The result, and SCC set if it is not zero.
constexpr Result nonzero32(u64 v) { return {u(v), u(v) != 0}; }
constexpr Result nonzero64(u64 v) { return {v, v != 0}; }
constexpr Result kept(u64 v, const Scalar& x) { return {v, x.scc}; }

u64 field(u64 value, unsigned offset, unsigned width) {
  const u64 shifted = value >> offset;
  return width >= 64 ? shifted : shifted & ((u64{1} << width) - 1);
}
u64 extended(u64 value, unsigned width) {
  if (width == 0) return 0;
  return width >= 64 ? value
                     : static_cast<u64>(static_cast<i64>(value << (64 - width)) >> (64 - width));
}

// clang-format off
const ScalarRow kRows[] = {
    {"s_add_u32 s6, s0, s2",        32, [](const Scalar& x) { const u64 r = u64{u(x.a)} + u(x.b); return Result{u(r), r >> 32 != 0}; }},
    {"s_sub_u32 s6, s0, s2",        32, [](const Scalar& x) { return Result{u(x.a - x.b), u(x.b) > u(x.a)}; }},
    {"s_add_i32 s6, s0, s2",        32, [](const Scalar& x) { return Result{u(x.a + x.b), overflows(i64{s(x.a)} + s(x.b))}; }},
    {"s_sub_i32 s6, s0, s2",        32, [](const Scalar& x) { return Result{u(x.a - x.b), overflows(i64{s(x.a)} - s(x.b))}; }},
    {"s_addc_u32 s6, s0, s2",       32, [](const Scalar& x) { const u64 r = u64{u(x.a)} + u(x.b) + x.scc; return Result{u(r), r >> 32 != 0}; }},
    {"s_subb_u32 s6, s0, s2",       32, [](const Scalar& x) { return Result{u(x.a - x.b - x.scc), u64{u(x.b)} + x.scc > u(x.a)}; }},
    {"s_min_i32 s6, s0, s2",        32, [](const Scalar& x) { return Result{u(std::min(s(x.a), s(x.b)) + u64{0}), s(x.a) < s(x.b)}; }},
    {"s_min_u32 s6, s0, s2",        32, [](const Scalar& x) { return Result{std::min(u(x.a), u(x.b)), u(x.a) < u(x.b)}; }},
    {"s_max_i32 s6, s0, s2",        32, [](const Scalar& x) { return Result{static_cast<u32>(std::max(s(x.a), s(x.b))), s(x.a) >= s(x.b)}; }},
    {"s_max_u32 s6, s0, s2",        32, [](const Scalar& x) { return Result{std::max(u(x.a), u(x.b)), u(x.a) >= u(x.b)}; }},
    {"s_cselect_b32 s6, s0, s2",    32, [](const Scalar& x) { return kept(x.scc ? u(x.a) : u(x.b), x); }},
    {"s_cselect_b64 s[6:7], s[0:1], s[2:3]", 64, [](const Scalar& x) { return kept(x.scc ? x.a : x.b, x); }},
    {"s_and_b32 s6, s0, s2",        32, [](const Scalar& x) { return nonzero32(x.a & x.b); }},
    {"s_and_b64 s[6:7], s[0:1], s[2:3]",   64, [](const Scalar& x) { return nonzero64(x.a & x.b); }},
    {"s_or_b32 s6, s0, s2",         32, [](const Scalar& x) { return nonzero32(x.a | x.b); }},
    {"s_or_b64 s[6:7], s[0:1], s[2:3]",    64, [](const Scalar& x) { return nonzero64(x.a | x.b); }},
    {"s_xor_b32 s6, s0, s2",        32, [](const Scalar& x) { return nonzero32(x.a ^ x.b); }},
    {"s_xor_b64 s[6:7], s[0:1], s[2:3]",   64, [](const Scalar& x) { return nonzero64(x.a ^ x.b); }},
    {"s_andn2_b32 s6, s0, s2",      32, [](const Scalar& x) { return nonzero32(x.a & ~x.b); }},
    {"s_andn2_b64 s[6:7], s[0:1], s[2:3]", 64, [](const Scalar& x) { return nonzero64(x.a & ~x.b); }},
    {"s_orn2_b32 s6, s0, s2",       32, [](const Scalar& x) { return nonzero32(x.a | ~x.b); }},
    {"s_orn2_b64 s[6:7], s[0:1], s[2:3]",  64, [](const Scalar& x) { return nonzero64(x.a | ~x.b); }},
    {"s_nand_b64 s[6:7], s[0:1], s[2:3]",  64, [](const Scalar& x) { return nonzero64(~(x.a & x.b)); }},
    {"s_nor_b32 s6, s0, s2",        32, [](const Scalar& x) { return nonzero32(~(x.a | x.b)); }},
    {"s_xnor_b64 s[6:7], s[0:1], s[2:3]",  64, [](const Scalar& x) { return nonzero64(~(x.a ^ x.b)); }},
    {"s_lshl_b32 s6, s0, s2",       32, [](const Scalar& x) { return nonzero32(x.a << (x.b & 31)); }},
    {"s_lshl_b64 s[6:7], s[0:1], s2",      64, [](const Scalar& x) { return nonzero64(x.a << (x.b & 63)); }},
    {"s_lshr_b32 s6, s0, s2",       32, [](const Scalar& x) { return nonzero32(u(x.a) >> (x.b & 31)); }},
    {"s_lshr_b64 s[6:7], s[0:1], s2",      64, [](const Scalar& x) { return nonzero64(x.a >> (x.b & 63)); }},
    {"s_ashr_i32 s6, s0, s2",       32, [](const Scalar& x) { return nonzero32(static_cast<u32>(s(x.a) >> (x.b & 31))); }},
    {"s_ashr_i64 s[6:7], s[0:1], s2",      64, [](const Scalar& x) { return nonzero64(static_cast<u64>(static_cast<i64>(x.a) >> (x.b & 63))); }},
    {"s_bfm_b32 s6, s0, s2",        32, [](const Scalar& x) { return kept(u(((u64{1} << (x.a & 31)) - 1) << (x.b & 31)), x); }},
    {"s_bfm_b64 s[6:7], s0, s2",    64, [](const Scalar& x) { return kept(((u64{1} << (x.a & 63)) - 1) << (x.b & 63), x); }},
    {"s_mul_i32 s6, s0, s2",        32, [](const Scalar& x) { return kept(u(x.a * x.b), x); }},
    {"s_mul_hi_u32 s6, s0, s2",     32, [](const Scalar& x) { return kept(u64{u(x.a)} * u(x.b) >> 32, x); }},
    {"s_mul_hi_i32 s6, s0, s2",     32, [](const Scalar& x) { return kept(u(static_cast<u64>(i64{s(x.a)} * s(x.b) >> 32)), x); }},
    {"s_bfe_u32 s6, s0, s2",        32, [](const Scalar& x) { return nonzero32(field(u(x.a), x.b & 31, x.b >> 16 & 127)); }},
    {"s_bfe_i32 s6, s0, s2",        32, [](const Scalar& x) {
       const unsigned offset = x.b & 31, width = x.b >> 16 & 127;
       return nonzero32(extended(field(u(x.a), offset, width), std::min(width, 32 - offset))); }},
    {"s_bfe_u64 s[6:7], s[0:1], s2", 64, [](const Scalar& x) { return nonzero64(field(x.a, x.b & 63, x.b >> 16 & 127)); }},
    {"s_bfe_i64 s[6:7], s[0:1], s2", 64, [](const Scalar& x) {
       const unsigned offset = x.b & 63, width = x.b >> 16 & 127;
       return nonzero64(extended(field(x.a, offset, width), std::min(width, 64 - offset))); }},
    {"s_absdiff_i32 s6, s0, s2",    32, [](const Scalar& x) { const u32 d = u(x.a - x.b); return nonzero32(static_cast<i32>(d) < 0 ? 0 - d : d); }},
    {"s_lshl1_add_u32 s6, s0, s2",  32, [](const Scalar& x) { const u64 r = (u64{u(x.a)} << 1) + u(x.b); return Result{u(r), r >> 32 != 0}; }},
    {"s_lshl4_add_u32 s6, s0, s2",  32, [](const Scalar& x) { const u64 r = (u64{u(x.a)} << 4) + u(x.b); return Result{u(r), r >> 32 != 0}; }},
    {"s_pack_ll_b32_b16 s6, s0, s2", 32, [](const Scalar& x) { return kept((x.a & 0xffff) | (x.b & 0xffff) << 16, x); }},
    {"s_pack_lh_b32_b16 s6, s0, s2", 32, [](const Scalar& x) { return kept((x.a & 0xffff) | (x.b & 0xffff0000), x); }},
    {"s_pack_hh_b32_b16 s6, s0, s2", 32, [](const Scalar& x) { return kept((u(x.a) >> 16) | (x.b & 0xffff0000), x); }},
    {"s_mov_b32 s6, s0",            32, [](const Scalar& x) { return kept(u(x.a), x); }},
    {"s_mov_b64 s[6:7], s[0:1]",    64, [](const Scalar& x) { return kept(x.a, x); }},
    {"s_cmov_b32 s6, s0",           32, [](const Scalar& x) { return kept(x.scc ? u(x.a) : u(x.old), x); }},
    {"s_cmov_b64 s[6:7], s[0:1]",   64, [](const Scalar& x) { return kept(x.scc ? x.a : x.old, x); }},
    {"s_not_b32 s6, s0",            32, [](const Scalar& x) { return nonzero32(~x.a); }},
    {"s_not_b64 s[6:7], s[0:1]",    64, [](const Scalar& x) { return nonzero64(~x.a); }},
    {"s_wqm_b32 s6, s0",            32, [](const Scalar& x) { u32 r = 0; for (unsigned q = 0; q < 32; q += 4) r |= (u(x.a) >> q & 15) ? 15u << q : 0; return nonzero32(r); }},
    {"s_wqm_b64 s[6:7], s[0:1]",    64, [](const Scalar& x) { u64 r = 0; for (unsigned q = 0; q < 64; q += 4) r |= (x.a >> q & 15) ? u64{15} << q : 0; return nonzero64(r); }},
    {"s_quadmask_b64 s[6:7], s[0:1]", 64, [](const Scalar& x) { u64 r = 0; for (unsigned q = 0; q < 16; ++q) r |= u64{(x.a >> 4 * q & 15) != 0} << q; return nonzero64(r); }},
    {"s_brev_b32 s6, s0",           32, [](const Scalar& x) { u32 r = 0; for (unsigned i = 0; i < 32; ++i) r |= (u(x.a) >> i & 1) << (31 - i); return kept(r, x); }},
    {"s_brev_b64 s[6:7], s[0:1]",   64, [](const Scalar& x) { u64 r = 0; for (unsigned i = 0; i < 64; ++i) r |= (x.a >> i & 1) << (63 - i); return kept(r, x); }},
    {"s_bcnt0_i32_b32 s6, s0",      32, [](const Scalar& x) { return nonzero32(static_cast<u64>(std::popcount(~u(x.a)))); }},
    {"s_bcnt1_i32_b64 s6, s[0:1]",  32, [](const Scalar& x) { return nonzero32(static_cast<u64>(std::popcount(x.a))); }},
    {"s_ff0_i32_b32 s6, s0",        32, [](const Scalar& x) { return kept(~u(x.a) ? static_cast<u32>(std::countr_one(u(x.a))) : 0xffffffff, x); }},
    {"s_ff1_i32_b32 s6, s0",        32, [](const Scalar& x) { return kept(u(x.a) ? static_cast<u32>(std::countr_zero(u(x.a))) : 0xffffffff, x); }},
    {"s_ff1_i32_b64 s6, s[0:1]",    32, [](const Scalar& x) { return kept(x.a ? static_cast<u32>(std::countr_zero(x.a)) : 0xffffffff, x); }},
    {"s_flbit_i32_b32 s6, s0",      32, [](const Scalar& x) { return kept(u(x.a) ? static_cast<u32>(std::countl_zero(u(x.a))) : 0xffffffff, x); }},
    {"s_flbit_i32_b64 s6, s[0:1]",  32, [](const Scalar& x) { return kept(x.a ? static_cast<u32>(std::countl_zero(x.a)) : 0xffffffff, x); }},
    {"s_flbit_i32 s6, s0",          32, [](const Scalar& x) { const u32 v = s(x.a) < 0 ? ~u(x.a) : u(x.a); return kept(v ? static_cast<u32>(std::countl_zero(v)) : 0xffffffff, x); }},
    {"s_flbit_i32_i64 s6, s[0:1]",  32, [](const Scalar& x) { const u64 v = static_cast<i64>(x.a) < 0 ? ~x.a : x.a; return kept(v ? static_cast<u32>(std::countl_zero(v)) : 0xffffffff, x); }},
    {"s_sext_i32_i8 s6, s0",        32, [](const Scalar& x) { return kept(u(static_cast<u64>(static_cast<int8_t>(x.a))), x); }},
    {"s_sext_i32_i16 s6, s0",       32, [](const Scalar& x) { return kept(u(static_cast<u64>(static_cast<int16_t>(x.a))), x); }},
    {"s_bitset0_b32 s6, s0",        32, [](const Scalar& x) { return kept(u(x.old) & ~(1u << (x.a & 31)), x); }},
    {"s_bitset1_b64 s[6:7], s0",    64, [](const Scalar& x) { return kept(x.old | u64{1} << (x.a & 63), x); }},
    {"s_abs_i32 s6, s0",            32, [](const Scalar& x) { return nonzero32(s(x.a) < 0 ? 0 - u(x.a) : u(x.a)); }},
    {"s_bitreplicate_b64_b32 s[6:7], s0", 64, [](const Scalar& x) { u64 r = 0; for (unsigned i = 0; i < 32; ++i) r |= (x.a >> i & 1) * 3 << 2 * i; return kept(r, x); }},
    {"s_movk_i32 s6, 0x8001",       32, [](const Scalar& x) { return kept(0xffff8001, x); }},
    {"s_cmovk_i32 s6, 0x7001",      32, [](const Scalar& x) { return kept(x.scc ? 0x7001 : u(x.old), x); }},
    {"s_addk_i32 s6, 0x7fff",       32, [](const Scalar& x) { return Result{u(x.old + 0x7fff), overflows(i64{s(x.old)} + 0x7fff)}; }},
    {"s_mulk_i32 s6, 0xfffe",       32, [](const Scalar& x) { return kept(u(x.old * ~u64{1}), x); }},
    {"s_cmp_eq_i32 s0, s2",         0,  [](const Scalar& x) { return Result{0, u(x.a) == u(x.b)}; }},
    {"s_cmp_lg_u32 s0, s2",         0,  [](const Scalar& x) { return Result{0, u(x.a) != u(x.b)}; }},
    {"s_cmp_gt_i32 s0, s2",         0,  [](const Scalar& x) { return Result{0, s(x.a) > s(x.b)}; }},
    {"s_cmp_ge_u32 s0, s2",         0,  [](const Scalar& x) { return Result{0, u(x.a) >= u(x.b)}; }},
    {"s_cmp_lt_i32 s0, -5",         0,  [](const Scalar& x) { return Result{0, s(x.a) < -5}; }},
    {"s_cmp_le_u32 s0, 0x80000000", 0,  [](const Scalar& x) { return Result{0, u(x.a) <= 0x80000000}; }},
    {"s_cmp_eq_u64 s[0:1], s[2:3]", 0,  [](const Scalar& x) { return Result{0, x.a == x.b}; }},
    {"s_cmp_lg_u64 s[0:1], -1",     0,  [](const Scalar& x) { return Result{0, x.a != ~u64{0}}; }},
    {"s_bitcmp0_b32 s0, s2",        0,  [](const Scalar& x) { return Result{0, (x.a >> (x.b & 31) & 1) == 0}; }},
    {"s_bitcmp1_b64 s[0:1], s2",    0,  [](const Scalar& x) { return Result{0, (x.a >> (x.b & 63) & 1) == 1}; }},
    {"s_cmpk_gt_i32 s0, 0x8000",    0,  [](const Scalar& x) { return Result{0, s(x.a) > -32768}; }},
    {"s_cmpk_gt_u32 s0, 0x8000",    0,  [](const Scalar& x) { return Result{0, u(x.a) > 0x8000}; }},
};

// s[2:3] holds EXEC before; the result is the previous EXEC.
struct MaskRow {
  const char* text;
  u64 (*exec)(u64 exec, u64 source);
  bool returns_new;  // *_wrexec: the result is the new EXEC
};
const MaskRow kMasks[] = {
    {"s_and_saveexec_b64 s[6:7], s[0:1]",   [](u64 e, u64 m) { return m & e; },    false},
    {"s_or_saveexec_b64 s[6:7], s[0:1]",    [](u64 e, u64 m) { return m | e; },    false},
    {"s_xor_saveexec_b64 s[6:7], s[0:1]",   [](u64 e, u64 m) { return m ^ e; },    false},
    {"s_andn2_saveexec_b64 s[6:7], s[0:1]", [](u64 e, u64 m) { return m & ~e; },   false},
    {"s_orn2_saveexec_b64 s[6:7], s[0:1]",  [](u64 e, u64 m) { return m | ~e; },   false},
    {"s_nand_saveexec_b64 s[6:7], s[0:1]",  [](u64 e, u64 m) { return ~(m & e); }, false},
    {"s_nor_saveexec_b64 s[6:7], s[0:1]",   [](u64 e, u64 m) { return ~(m | e); }, false},
    {"s_xnor_saveexec_b64 s[6:7], s[0:1]",  [](u64 e, u64 m) { return ~(m ^ e); }, false},
    {"s_andn1_saveexec_b64 s[6:7], s[0:1]", [](u64 e, u64 m) { return ~m & e; },   false},
    {"s_orn1_saveexec_b64 s[6:7], s[0:1]",  [](u64 e, u64 m) { return ~m | e; },   false},
    {"s_andn1_wrexec_b64 s[6:7], s[0:1]",   [](u64 e, u64 m) { return ~m & e; },   true},
    {"s_andn2_wrexec_b64 s[6:7], s[0:1]",   [](u64 e, u64 m) { return m & ~e; },   true},
};
// clang-format on

u64 number(std::mt19937_64& random) {
  constexpr u64 kEdges[] = {0,
                            1,
                            2,
                            31,
                            32,
                            33,
                            63,
                            64,
                            0xffff,
                            0x7fffffff,
                            0x80000000,
                            0xffffffff,
                            0x100000000,
                            0x7fffffffffffffff,
                            0x8000000000000000,
                            ~u64{0},
                            0x00200000,
                            0x00400008,
                            0x00010003,
                            0x001f0001,
                            0xfffffffb,
                            0x8000,
                            0xffff8000};
  return random() % 3 ? kEdges[random() % std::size(kEdges)] : random();
}

}  // namespace

TEST_CASE("scalar arithmetic, logic and compares agree with the instruction set document") {
  LaneBench bench;
  std::mt19937_64 random(3);
  for (const ScalarRow& row : kRows) {
    for (unsigned round = 0; round < 400; ++round) {
      const Scalar x{number(random), number(random), number(random), (random() & 1) != 0};
      bench.wave.set_pair(0, x.a);
      bench.wave.set_pair(2, x.b);
      bench.wave.set_pair(6, x.old);
      bench.wave.scc = x.scc;
      bench.run(row.text);
      const Result want = row.reference(x);
      const u64 got = row.bits == 64   ? bench.wave.pair(6)
                      : row.bits == 32 ? bench.wave.scalar[6]
                                       : 0;
      if (got != want.value || bench.wave.scc != want.scc) {
        CAPTURE(row.text, x.a, x.b, x.old, x.scc, want.value, want.scc);
        CHECK(got == want.value);
        CHECK(bench.wave.scc == want.scc);
        break;
      }
    }
    SUCCEED(row.text);
  }
}

TEST_CASE("the forms that save EXEC change it, and SCC tells whether lanes are left") {
  LaneBench bench;
  std::mt19937_64 random(4);
  for (const MaskRow& row : kMasks) {
    for (unsigned round = 0; round < 100; ++round) {
      const u64 exec = number(random), source = round % 4 == 0   ? exec
                                                : round % 4 == 1 ? ~exec
                                                                 : number(random);
      bench.wave.set_exec(exec);
      bench.wave.set_pair(0, source);
      bench.run(row.text);
      const u64 want = row.exec(exec, source);
      CAPTURE(row.text, exec, source);
      CHECK(bench.wave.exec() == want);
      CHECK(bench.wave.pair(6) == (row.returns_new ? want : exec));
      CHECK(bench.wave.scc == (want != 0));
    }
  }
}

}  // namespace uptempo::vgpu::gfx9::test
