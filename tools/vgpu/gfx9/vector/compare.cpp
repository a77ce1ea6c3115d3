// Comparisons of 32-bit values.
#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/vector/compare.cpp"
#include <hwy/foreach_target.h>

#include "gfx9/vector/compare-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {
namespace {

constexpr auto kCmpI32 = integer_compares<I32, 0>(
    {Opcode::v_cmp_f_i32, Opcode::v_cmp_lt_i32, Opcode::v_cmp_eq_i32, Opcode::v_cmp_le_i32,
     Opcode::v_cmp_gt_i32, Opcode::v_cmp_ne_i32, Opcode::v_cmp_ge_i32, Opcode::v_cmp_t_i32});
constexpr auto kCmpxI32 = integer_compares<I32, kCold | kWritesExec>(
    {Opcode::v_cmpx_f_i32, Opcode::v_cmpx_lt_i32, Opcode::v_cmpx_eq_i32, Opcode::v_cmpx_le_i32,
     Opcode::v_cmpx_gt_i32, Opcode::v_cmpx_ne_i32, Opcode::v_cmpx_ge_i32, Opcode::v_cmpx_t_i32});
constexpr auto kCmpU32 = integer_compares<U32, 0>(
    {Opcode::v_cmp_f_u32, Opcode::v_cmp_lt_u32, Opcode::v_cmp_eq_u32, Opcode::v_cmp_le_u32,
     Opcode::v_cmp_gt_u32, Opcode::v_cmp_ne_u32, Opcode::v_cmp_ge_u32, Opcode::v_cmp_t_u32});
constexpr auto kCmpxU32 = integer_compares<U32, kCold | kWritesExec>(
    {Opcode::v_cmpx_f_u32, Opcode::v_cmpx_lt_u32, Opcode::v_cmpx_eq_u32, Opcode::v_cmpx_le_u32,
     Opcode::v_cmpx_gt_u32, Opcode::v_cmpx_ne_u32, Opcode::v_cmpx_ge_u32, Opcode::v_cmpx_t_u32});
constexpr auto kCmpF32 = float_compares<F32, 0>(
    {Opcode::v_cmp_f_f32, Opcode::v_cmp_lt_f32, Opcode::v_cmp_eq_f32, Opcode::v_cmp_le_f32,
     Opcode::v_cmp_gt_f32, Opcode::v_cmp_lg_f32, Opcode::v_cmp_ge_f32, Opcode::v_cmp_o_f32,
     Opcode::v_cmp_u_f32, Opcode::v_cmp_nge_f32, Opcode::v_cmp_nlg_f32, Opcode::v_cmp_ngt_f32,
     Opcode::v_cmp_nle_f32, Opcode::v_cmp_neq_f32, Opcode::v_cmp_nlt_f32, Opcode::v_cmp_tru_f32});
constexpr auto kCmpxF32 = float_compares<F32, kCold | kWritesExec>(
    {Opcode::v_cmpx_f_f32, Opcode::v_cmpx_lt_f32, Opcode::v_cmpx_eq_f32, Opcode::v_cmpx_le_f32,
     Opcode::v_cmpx_gt_f32, Opcode::v_cmpx_lg_f32, Opcode::v_cmpx_ge_f32, Opcode::v_cmpx_o_f32,
     Opcode::v_cmpx_u_f32, Opcode::v_cmpx_nge_f32, Opcode::v_cmpx_nlg_f32, Opcode::v_cmpx_ngt_f32,
     Opcode::v_cmpx_nle_f32, Opcode::v_cmpx_neq_f32, Opcode::v_cmpx_nlt_f32,
     Opcode::v_cmpx_tru_f32});

constexpr auto is_class = [](auto a, auto wanted) HWY_ATTR {
  return in_class(D32<false>{}, a, wanted, 0x80000000u, 0x7f800000u, 0x400000u);
};
constexpr Entry kClass[] = {
    op<Bit(U32, U32)>(Opcode::v_cmp_class_f32, is_class),
    op<Bit(U32, U32), kCold | kWritesExec>(Opcode::v_cmpx_class_f32, is_class)};

constexpr auto kEntries = [] {
  std::array<Entry, 66> all{};
  size_t n = 0;
  const auto append = [&](const auto& entries) {
    for (const Entry& entry : entries) all[n++] = entry;
  };
  append(kCmpI32);
  append(kCmpxI32);
  append(kCmpU32);
  append(kCmpxU32);
  append(kCmpF32);
  append(kCmpxF32);
  append(kClass);
  return all;
}();

}  // namespace

std::span<const Entry> compare_entries() { return kEntries; }

}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
