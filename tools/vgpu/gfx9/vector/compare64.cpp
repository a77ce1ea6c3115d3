// Comparisons of 64-bit values.
#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/vector/compare64.cpp"
#include <hwy/foreach_target.h>

#include "gfx9/vector/compare-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {
namespace {

constexpr auto kCmpI64 = integer_compares<I64, 0>(
    {Opcode::v_cmp_f_i64, Opcode::v_cmp_lt_i64, Opcode::v_cmp_eq_i64, Opcode::v_cmp_le_i64,
     Opcode::v_cmp_gt_i64, Opcode::v_cmp_ne_i64, Opcode::v_cmp_ge_i64, Opcode::v_cmp_t_i64});
constexpr auto kCmpxI64 = integer_compares<I64, kCold | kWritesExec>(
    {Opcode::v_cmpx_f_i64, Opcode::v_cmpx_lt_i64, Opcode::v_cmpx_eq_i64, Opcode::v_cmpx_le_i64,
     Opcode::v_cmpx_gt_i64, Opcode::v_cmpx_ne_i64, Opcode::v_cmpx_ge_i64, Opcode::v_cmpx_t_i64});
constexpr auto kCmpU64 = integer_compares<U64, 0>(
    {Opcode::v_cmp_f_u64, Opcode::v_cmp_lt_u64, Opcode::v_cmp_eq_u64, Opcode::v_cmp_le_u64,
     Opcode::v_cmp_gt_u64, Opcode::v_cmp_ne_u64, Opcode::v_cmp_ge_u64, Opcode::v_cmp_t_u64});
constexpr auto kCmpxU64 = integer_compares<U64, kCold | kWritesExec>(
    {Opcode::v_cmpx_f_u64, Opcode::v_cmpx_lt_u64, Opcode::v_cmpx_eq_u64, Opcode::v_cmpx_le_u64,
     Opcode::v_cmpx_gt_u64, Opcode::v_cmpx_ne_u64, Opcode::v_cmpx_ge_u64, Opcode::v_cmpx_t_u64});
constexpr auto kCmpF64 = float_compares<F64, 0>(
    {Opcode::v_cmp_f_f64, Opcode::v_cmp_lt_f64, Opcode::v_cmp_eq_f64, Opcode::v_cmp_le_f64,
     Opcode::v_cmp_gt_f64, Opcode::v_cmp_lg_f64, Opcode::v_cmp_ge_f64, Opcode::v_cmp_o_f64,
     Opcode::v_cmp_u_f64, Opcode::v_cmp_nge_f64, Opcode::v_cmp_nlg_f64, Opcode::v_cmp_ngt_f64,
     Opcode::v_cmp_nle_f64, Opcode::v_cmp_neq_f64, Opcode::v_cmp_nlt_f64, Opcode::v_cmp_tru_f64});
constexpr auto kCmpxF64 = float_compares<F64, kCold | kWritesExec>(
    {Opcode::v_cmpx_f_f64, Opcode::v_cmpx_lt_f64, Opcode::v_cmpx_eq_f64, Opcode::v_cmpx_le_f64,
     Opcode::v_cmpx_gt_f64, Opcode::v_cmpx_lg_f64, Opcode::v_cmpx_ge_f64, Opcode::v_cmpx_o_f64,
     Opcode::v_cmpx_u_f64, Opcode::v_cmpx_nge_f64, Opcode::v_cmpx_nlg_f64, Opcode::v_cmpx_ngt_f64,
     Opcode::v_cmpx_nle_f64, Opcode::v_cmpx_neq_f64, Opcode::v_cmpx_nlt_f64,
     Opcode::v_cmpx_tru_f64});

constexpr auto is_class = [](auto a, auto wanted) HWY_ATTR {
  return in_class(D64{}, a, hn::PromoteTo(D64{}, wanted), uint64_t{1} << 63, uint64_t{0x7ff} << 52,
                  uint64_t{1} << 51);
};
constexpr Entry kClass[] = {
    op<Bit(U64, U32)>(Opcode::v_cmp_class_f64, is_class),
    op<Bit(U64, U32), kCold | kWritesExec>(Opcode::v_cmpx_class_f64, is_class)};

constexpr auto kEntries = [] {
  std::array<Entry, 66> all{};
  size_t n = 0;
  const auto append = [&](const auto& entries) {
    for (const Entry& entry : entries) all[n++] = entry;
  };
  append(kCmpI64);
  append(kCmpxI64);
  append(kCmpU64);
  append(kCmpxU64);
  append(kCmpF64);
  append(kCmpxF64);
  append(kClass);
  return all;
}();

}  // namespace

std::span<const Entry> compare64_entries() { return kEntries; }

}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
