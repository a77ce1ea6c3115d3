// Every comparison of every type, as v_cmp and v_cmpx.
#include <cmath>

#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/vector/vector_machine.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u64 = uint64_t;

enum Relation { f, lt, eq, le, gt, lg, ge, o, u, nge, nlg, ngt, nle, neq, nlt, t };

template <class T>
bool holds(Relation relation, T a, T b) {
  const bool unordered = a != a || b != b;
  const bool less = a<b, equal = a == b, greater = a> b;
  switch (relation) {
    case f:
      return false;
    case lt:
      return less;
    case eq:
      return equal;
    case le:
      return less || equal;
    case gt:
      return greater;
    case lg:
      return less || greater;
    case ge:
      return greater || equal;
    case o:
      return !unordered;
    case u:
      return unordered;
    case nge:
      return !(greater || equal);
    case nlg:
      return !(less || greater);
    case ngt:
      return !greater;
    case nle:
      return !(less || equal);
    case neq:
      return !equal;
    case nlt:
      return !less;
    case t:
      return true;
  }
  return false;
}

template <class T>
struct Line {
  Relation relation;
  Opcode cmp, cmpx;
};

template <class T, size_t kN>
void check(const Line<T> (&lines)[kN], unsigned registers, T (*value)(u64)) {
  for (const Line<T>& line : lines) {
    for (const bool x : {false, true}) {
      CAPTURE(static_cast<unsigned>(line.cmp), x);
      check_bits(
          {x ? line.cmpx : line.cmp, 2, {registers, registers, 1}},
          [&](u64 a, u64 b) { return holds(line.relation, value(a), value(b)); }, x);
    }
  }
}

}  // namespace

TEST_CASE("comparisons of i16 agree with the reference") {
  const Line<int16_t> lines[] = {
      {f, Opcode::v_cmp_f_i16, Opcode::v_cmpx_f_i16},
      {lt, Opcode::v_cmp_lt_i16, Opcode::v_cmpx_lt_i16},
      {eq, Opcode::v_cmp_eq_i16, Opcode::v_cmpx_eq_i16},
      {le, Opcode::v_cmp_le_i16, Opcode::v_cmpx_le_i16},
      {gt, Opcode::v_cmp_gt_i16, Opcode::v_cmpx_gt_i16},
      {neq, Opcode::v_cmp_ne_i16, Opcode::v_cmpx_ne_i16},
      {ge, Opcode::v_cmp_ge_i16, Opcode::v_cmpx_ge_i16},
      {t, Opcode::v_cmp_t_i16, Opcode::v_cmpx_t_i16},
  };
  check<int16_t>(lines, 1, [](u64 v) -> int16_t { return static_cast<int16_t>(v); });
}

TEST_CASE("comparisons of u16 agree with the reference") {
  const Line<uint16_t> lines[] = {
      {f, Opcode::v_cmp_f_u16, Opcode::v_cmpx_f_u16},
      {lt, Opcode::v_cmp_lt_u16, Opcode::v_cmpx_lt_u16},
      {eq, Opcode::v_cmp_eq_u16, Opcode::v_cmpx_eq_u16},
      {le, Opcode::v_cmp_le_u16, Opcode::v_cmpx_le_u16},
      {gt, Opcode::v_cmp_gt_u16, Opcode::v_cmpx_gt_u16},
      {neq, Opcode::v_cmp_ne_u16, Opcode::v_cmpx_ne_u16},
      {ge, Opcode::v_cmp_ge_u16, Opcode::v_cmpx_ge_u16},
      {t, Opcode::v_cmp_t_u16, Opcode::v_cmpx_t_u16},
  };
  check<uint16_t>(lines, 1, [](u64 v) -> uint16_t { return static_cast<uint16_t>(v); });
}

TEST_CASE("comparisons of i32 agree with the reference") {
  const Line<int32_t> lines[] = {
      {f, Opcode::v_cmp_f_i32, Opcode::v_cmpx_f_i32},
      {lt, Opcode::v_cmp_lt_i32, Opcode::v_cmpx_lt_i32},
      {eq, Opcode::v_cmp_eq_i32, Opcode::v_cmpx_eq_i32},
      {le, Opcode::v_cmp_le_i32, Opcode::v_cmpx_le_i32},
      {gt, Opcode::v_cmp_gt_i32, Opcode::v_cmpx_gt_i32},
      {neq, Opcode::v_cmp_ne_i32, Opcode::v_cmpx_ne_i32},
      {ge, Opcode::v_cmp_ge_i32, Opcode::v_cmpx_ge_i32},
      {t, Opcode::v_cmp_t_i32, Opcode::v_cmpx_t_i32},
  };
  check<int32_t>(lines, 1, [](u64 v) -> int32_t { return static_cast<int32_t>(v); });
}

TEST_CASE("comparisons of u32 agree with the reference") {
  const Line<uint32_t> lines[] = {
      {f, Opcode::v_cmp_f_u32, Opcode::v_cmpx_f_u32},
      {lt, Opcode::v_cmp_lt_u32, Opcode::v_cmpx_lt_u32},
      {eq, Opcode::v_cmp_eq_u32, Opcode::v_cmpx_eq_u32},
      {le, Opcode::v_cmp_le_u32, Opcode::v_cmpx_le_u32},
      {gt, Opcode::v_cmp_gt_u32, Opcode::v_cmpx_gt_u32},
      {neq, Opcode::v_cmp_ne_u32, Opcode::v_cmpx_ne_u32},
      {ge, Opcode::v_cmp_ge_u32, Opcode::v_cmpx_ge_u32},
      {t, Opcode::v_cmp_t_u32, Opcode::v_cmpx_t_u32},
  };
  check<uint32_t>(lines, 1, [](u64 v) -> uint32_t { return static_cast<uint32_t>(v); });
}

TEST_CASE("comparisons of i64 agree with the reference") {
  const Line<int64_t> lines[] = {
      {f, Opcode::v_cmp_f_i64, Opcode::v_cmpx_f_i64},
      {lt, Opcode::v_cmp_lt_i64, Opcode::v_cmpx_lt_i64},
      {eq, Opcode::v_cmp_eq_i64, Opcode::v_cmpx_eq_i64},
      {le, Opcode::v_cmp_le_i64, Opcode::v_cmpx_le_i64},
      {gt, Opcode::v_cmp_gt_i64, Opcode::v_cmpx_gt_i64},
      {neq, Opcode::v_cmp_ne_i64, Opcode::v_cmpx_ne_i64},
      {ge, Opcode::v_cmp_ge_i64, Opcode::v_cmpx_ge_i64},
      {t, Opcode::v_cmp_t_i64, Opcode::v_cmpx_t_i64},
  };
  check<int64_t>(lines, 2, [](u64 v) -> int64_t { return static_cast<int64_t>(v); });
}

TEST_CASE("comparisons of u64 agree with the reference") {
  const Line<uint64_t> lines[] = {
      {f, Opcode::v_cmp_f_u64, Opcode::v_cmpx_f_u64},
      {lt, Opcode::v_cmp_lt_u64, Opcode::v_cmpx_lt_u64},
      {eq, Opcode::v_cmp_eq_u64, Opcode::v_cmpx_eq_u64},
      {le, Opcode::v_cmp_le_u64, Opcode::v_cmpx_le_u64},
      {gt, Opcode::v_cmp_gt_u64, Opcode::v_cmpx_gt_u64},
      {neq, Opcode::v_cmp_ne_u64, Opcode::v_cmpx_ne_u64},
      {ge, Opcode::v_cmp_ge_u64, Opcode::v_cmpx_ge_u64},
      {t, Opcode::v_cmp_t_u64, Opcode::v_cmpx_t_u64},
  };
  check<uint64_t>(lines, 2, [](u64 v) -> uint64_t { return v; });
}

TEST_CASE("comparisons of f16 agree with the reference") {
  const Line<double> lines[] = {
      {f, Opcode::v_cmp_f_f16, Opcode::v_cmpx_f_f16},
      {lt, Opcode::v_cmp_lt_f16, Opcode::v_cmpx_lt_f16},
      {eq, Opcode::v_cmp_eq_f16, Opcode::v_cmpx_eq_f16},
      {le, Opcode::v_cmp_le_f16, Opcode::v_cmpx_le_f16},
      {gt, Opcode::v_cmp_gt_f16, Opcode::v_cmpx_gt_f16},
      {lg, Opcode::v_cmp_lg_f16, Opcode::v_cmpx_lg_f16},
      {ge, Opcode::v_cmp_ge_f16, Opcode::v_cmpx_ge_f16},
      {o, Opcode::v_cmp_o_f16, Opcode::v_cmpx_o_f16},
      {u, Opcode::v_cmp_u_f16, Opcode::v_cmpx_u_f16},
      {nge, Opcode::v_cmp_nge_f16, Opcode::v_cmpx_nge_f16},
      {nlg, Opcode::v_cmp_nlg_f16, Opcode::v_cmpx_nlg_f16},
      {ngt, Opcode::v_cmp_ngt_f16, Opcode::v_cmpx_ngt_f16},
      {nle, Opcode::v_cmp_nle_f16, Opcode::v_cmpx_nle_f16},
      {neq, Opcode::v_cmp_neq_f16, Opcode::v_cmpx_neq_f16},
      {nlt, Opcode::v_cmp_nlt_f16, Opcode::v_cmpx_nlt_f16},
      {t, Opcode::v_cmp_tru_f16, Opcode::v_cmpx_tru_f16},
  };
  check<double>(lines, 1, [](u64 v) -> double { return f16(v & 0xffff); });
}

TEST_CASE("comparisons of f32 agree with the reference") {
  const Line<float> lines[] = {
      {f, Opcode::v_cmp_f_f32, Opcode::v_cmpx_f_f32},
      {lt, Opcode::v_cmp_lt_f32, Opcode::v_cmpx_lt_f32},
      {eq, Opcode::v_cmp_eq_f32, Opcode::v_cmpx_eq_f32},
      {le, Opcode::v_cmp_le_f32, Opcode::v_cmpx_le_f32},
      {gt, Opcode::v_cmp_gt_f32, Opcode::v_cmpx_gt_f32},
      {lg, Opcode::v_cmp_lg_f32, Opcode::v_cmpx_lg_f32},
      {ge, Opcode::v_cmp_ge_f32, Opcode::v_cmpx_ge_f32},
      {o, Opcode::v_cmp_o_f32, Opcode::v_cmpx_o_f32},
      {u, Opcode::v_cmp_u_f32, Opcode::v_cmpx_u_f32},
      {nge, Opcode::v_cmp_nge_f32, Opcode::v_cmpx_nge_f32},
      {nlg, Opcode::v_cmp_nlg_f32, Opcode::v_cmpx_nlg_f32},
      {ngt, Opcode::v_cmp_ngt_f32, Opcode::v_cmpx_ngt_f32},
      {nle, Opcode::v_cmp_nle_f32, Opcode::v_cmpx_nle_f32},
      {neq, Opcode::v_cmp_neq_f32, Opcode::v_cmpx_neq_f32},
      {nlt, Opcode::v_cmp_nlt_f32, Opcode::v_cmpx_nlt_f32},
      {t, Opcode::v_cmp_tru_f32, Opcode::v_cmpx_tru_f32},
  };
  check<float>(lines, 1, [](u64 v) -> float { return f32(v); });
}

TEST_CASE("comparisons of f64 agree with the reference") {
  const Line<double> lines[] = {
      {f, Opcode::v_cmp_f_f64, Opcode::v_cmpx_f_f64},
      {lt, Opcode::v_cmp_lt_f64, Opcode::v_cmpx_lt_f64},
      {eq, Opcode::v_cmp_eq_f64, Opcode::v_cmpx_eq_f64},
      {le, Opcode::v_cmp_le_f64, Opcode::v_cmpx_le_f64},
      {gt, Opcode::v_cmp_gt_f64, Opcode::v_cmpx_gt_f64},
      {lg, Opcode::v_cmp_lg_f64, Opcode::v_cmpx_lg_f64},
      {ge, Opcode::v_cmp_ge_f64, Opcode::v_cmpx_ge_f64},
      {o, Opcode::v_cmp_o_f64, Opcode::v_cmpx_o_f64},
      {u, Opcode::v_cmp_u_f64, Opcode::v_cmpx_u_f64},
      {nge, Opcode::v_cmp_nge_f64, Opcode::v_cmpx_nge_f64},
      {nlg, Opcode::v_cmp_nlg_f64, Opcode::v_cmpx_nlg_f64},
      {ngt, Opcode::v_cmp_ngt_f64, Opcode::v_cmpx_ngt_f64},
      {nle, Opcode::v_cmp_nle_f64, Opcode::v_cmpx_nle_f64},
      {neq, Opcode::v_cmp_neq_f64, Opcode::v_cmpx_neq_f64},
      {nlt, Opcode::v_cmp_nlt_f64, Opcode::v_cmpx_nlt_f64},
      {t, Opcode::v_cmp_tru_f64, Opcode::v_cmpx_tru_f64},
  };
  check<double>(lines, 2, [](u64 v) -> double { return f64(v); });
}

TEST_CASE("v_cmp_class distinguishes ten classes") {
  const auto class_of = [](double v, bool quiet, double min_normal) {
    if (std::isnan(v)) return quiet ? 2u : 1u;
    const bool negative = std::signbit(v);
    if (std::isinf(v)) return negative ? 4u : 512u;
    if (v == 0) return negative ? 32u : 64u;
    if (std::fabs(v) < min_normal) return negative ? 16u : 128u;
    return negative ? 8u : 256u;
  };
  check_bits(
      {Opcode::v_cmp_class_f32, 2},
      [&](u64 a, u64 b) { return (class_of(f32(a), a >> 22 & 1, 0x1p-126) & b) != 0; }, false);
  check_bits(
      {Opcode::v_cmp_class_f16, 2},
      [&](u64 a, u64 b) { return (class_of(f16(a & 0xffff), a >> 9 & 1, 0x1p-14) & b) != 0; },
      false);
  check_bits(
      {Opcode::v_cmp_class_f64, 2, {2, 1, 1}},
      [&](u64 a, u64 b) { return (class_of(f64(a), a >> 51 & 1, 0x1p-1022) & b) != 0; }, false);
  check_bits(
      {Opcode::v_cmpx_class_f32, 2},
      [&](u64 a, u64 b) { return (class_of(f32(a), a >> 22 & 1, 0x1p-126) & b) != 0; }, true);
}

}  // namespace uptempo::vgpu::gfx9::test
