// Comparisons of 16-bit values, made in 32-bit lanes.
#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/vector/compare16.cpp"
#include <hwy/foreach_target.h>

#include "gfx9/vector/compare-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {
namespace {

constexpr auto kCmpI16 = integer_compares<I16, 0>(
    {Opcode::v_cmp_f_i16, Opcode::v_cmp_lt_i16, Opcode::v_cmp_eq_i16, Opcode::v_cmp_le_i16,
     Opcode::v_cmp_gt_i16, Opcode::v_cmp_ne_i16, Opcode::v_cmp_ge_i16, Opcode::v_cmp_t_i16});
constexpr auto kCmpxI16 = integer_compares<I16, kCold | kWritesExec>(
    {Opcode::v_cmpx_f_i16, Opcode::v_cmpx_lt_i16, Opcode::v_cmpx_eq_i16, Opcode::v_cmpx_le_i16,
     Opcode::v_cmpx_gt_i16, Opcode::v_cmpx_ne_i16, Opcode::v_cmpx_ge_i16, Opcode::v_cmpx_t_i16});
constexpr auto kCmpU16 = integer_compares<U16, 0>(
    {Opcode::v_cmp_f_u16, Opcode::v_cmp_lt_u16, Opcode::v_cmp_eq_u16, Opcode::v_cmp_le_u16,
     Opcode::v_cmp_gt_u16, Opcode::v_cmp_ne_u16, Opcode::v_cmp_ge_u16, Opcode::v_cmp_t_u16});
constexpr auto kCmpxU16 = integer_compares<U16, kCold | kWritesExec>(
    {Opcode::v_cmpx_f_u16, Opcode::v_cmpx_lt_u16, Opcode::v_cmpx_eq_u16, Opcode::v_cmpx_le_u16,
     Opcode::v_cmpx_gt_u16, Opcode::v_cmpx_ne_u16, Opcode::v_cmpx_ge_u16, Opcode::v_cmpx_t_u16});
constexpr auto kCmpF16 = float_compares<F16, kCold>(
    {Opcode::v_cmp_f_f16, Opcode::v_cmp_lt_f16, Opcode::v_cmp_eq_f16, Opcode::v_cmp_le_f16,
     Opcode::v_cmp_gt_f16, Opcode::v_cmp_lg_f16, Opcode::v_cmp_ge_f16, Opcode::v_cmp_o_f16,
     Opcode::v_cmp_u_f16, Opcode::v_cmp_nge_f16, Opcode::v_cmp_nlg_f16, Opcode::v_cmp_ngt_f16,
     Opcode::v_cmp_nle_f16, Opcode::v_cmp_neq_f16, Opcode::v_cmp_nlt_f16, Opcode::v_cmp_tru_f16});
constexpr auto kCmpxF16 = float_compares<F16, kCold | kWritesExec>(
    {Opcode::v_cmpx_f_f16, Opcode::v_cmpx_lt_f16, Opcode::v_cmpx_eq_f16, Opcode::v_cmpx_le_f16,
     Opcode::v_cmpx_gt_f16, Opcode::v_cmpx_lg_f16, Opcode::v_cmpx_ge_f16, Opcode::v_cmpx_o_f16,
     Opcode::v_cmpx_u_f16, Opcode::v_cmpx_nge_f16, Opcode::v_cmpx_nlg_f16, Opcode::v_cmpx_ngt_f16,
     Opcode::v_cmpx_nle_f16, Opcode::v_cmpx_neq_f16, Opcode::v_cmpx_nlt_f16,
     Opcode::v_cmpx_tru_f16});

constexpr auto is_class = [](auto a, auto wanted) HWY_ATTR {
  return in_class(D32<false>{}, a, wanted, 0x8000u, 0x7c00u, 0x200u);
};
constexpr Entry kClass[] = {
    op<Bit(U16, U32), kCold>(Opcode::v_cmp_class_f16, is_class),
    op<Bit(U16, U32), kCold | kWritesExec>(Opcode::v_cmpx_class_f16, is_class)};

constexpr auto kEntries = [] {
  std::array<Entry, 66> all{};
  size_t n = 0;
  const auto append = [&](const auto& entries) {
    for (const Entry& entry : entries) all[n++] = entry;
  };
  append(kCmpI16);
  append(kCmpxI16);
  append(kCmpU16);
  append(kCmpxU16);
  append(kCmpF16);
  append(kCmpxF16);
  append(kClass);
  return all;
}();

}  // namespace

std::span<const Entry> compare16_entries() { return kEntries; }

}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
