// Scalar arithmetic: SOP1, SOP2, SOPC and SOPK without control flow. Results and SCC follow
// "Instructions" of the Vega ISA document.
#include <algorithm>
#include <bit>
#include <limits>

#include "gfx9/scalar/scalar.hpp"

namespace uptempo::vgpu::gfx9::scalar {

constinit const std::array<uint64_t, 128> kConstants64 = [] {
  std::array<uint64_t, 128> value{};
  for (unsigned i = 0; i < value.size(); ++i) value[i] = constant64(kFirstConstant + i);
  return value;
}();

namespace {

using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;

template <class T>
constexpr T mask_bits(u32 width) {
  return width >= std::numeric_limits<T>::digits ? ~T{0} : (T{1} << width) - 1;
}

// S1: offset in the low bits, width in [22:16].
template <class T>
constexpr T extract(T value, u32 field) {
  const u32 width = field >> 16 & 0x7f;
  return static_cast<T>(value >> (field & (std::numeric_limits<T>::digits - 1))) &
         mask_bits<T>(width);
}
template <class T>
constexpr T extract_signed(T value, u32 field) {
  using S = std::make_signed_t<T>;
  constexpr u32 kBits = std::numeric_limits<T>::digits;
  const u32 width = field >> 16 & 0x7f;
  const T shifted = static_cast<T>(static_cast<S>(value) >> (field & (kBits - 1)));
  if (width == 0) return 0;
  if (width >= kBits) return shifted;
  return static_cast<T>(static_cast<S>(static_cast<T>(shifted << (kBits - width))) >>
                        (kBits - width));
}

template <class T>
constexpr T reverse(T value) {
  T result = 0;
  for (int i = 0; i < std::numeric_limits<T>::digits; ++i)
    result = static_cast<T>(result << 1 | (value >> i & 1));
  return result;
}

// For each group of four bits with a set bit: four set bits (whole quad mode), or one bit per
// group.
template <class T>
constexpr T whole_quads(T value) {
  T result = 0;
  for (int i = 0; i < std::numeric_limits<T>::digits; i += 4) {
    if ((value >> i & 0xf) != 0) result |= T{0xf} << i;
  }
  return result;
}
template <class T>
constexpr T quad_mask(T value) {
  T result = 0;
  for (int i = 0; i < std::numeric_limits<T>::digits; i += 4) {
    if ((value >> i & 0xf) != 0) result |= T{1} << (i / 4);
  }
  return result;
}

constexpr u32 first_one(u64 value, int bits) {
  const int at = std::countr_zero(value);
  return at >= bits ? ~0u : static_cast<u32>(at);
}
constexpr u32 leading(u64 value, int bits) {
  return value == 0 ? ~0u : static_cast<u32>(std::countl_zero(value) - (64 - bits));
}

constexpr u64 replicate(u32 value) {
  u64 result = 0;
  for (int i = 0; i < 32; ++i) result |= u64{value >> i & 1} * 3 << (2 * i);
  return result;
}

template <unsigned Shift>
constexpr u32 shift_add(u32 a, u32 b, bool& scc) {
  const u64 sum = (u64{a} << Shift) + b;
  scc = sum >> 32 != 0;
  return static_cast<u32>(sum);
}

template <class T>
constexpr T tested(T result, bool& scc) {
  scc = result != 0;
  return result;
}

inline u64 save_exec(Wave& wave, u64 exec) {
  const u64 before = wave.exec();
  wave.set_exec(exec);
  wave.scc = exec != 0;
  return before;
}
inline u64 write_exec(Wave& wave, u64 exec) {
  save_exec(wave, exec);
  return exec;
}

using enum Opcode;

constexpr Entry kArithmetic[] = {
    entry(s_add_u32,
          [](u32 a, u32 b, bool& scc) {
            const u32 d = a + b;
            scc = d < a;
            return d;
          }),
    entry(s_sub_u32,
          [](u32 a, u32 b, bool& scc) {
            scc = b > a;
            return a - b;
          }),
    entry(s_add_i32,
          [](u32 a, u32 b, bool& scc) {
            const u32 d = a + b;
            scc = (~(a ^ b) & (a ^ d)) >> 31;
            return d;
          }),
    entry(s_sub_i32,
          [](u32 a, u32 b, bool& scc) {
            const u32 d = a - b;
            scc = ((a ^ b) & (a ^ d)) >> 31;
            return d;
          }),
    entry(s_addc_u32,
          [](u32 a, u32 b, bool& scc) {
            const u64 d = u64{a} + b + scc;
            scc = d >> 32 != 0;
            return static_cast<u32>(d);
          }),
    entry(s_subb_u32,
          [](u32 a, u32 b, bool& scc) {
            const u64 d = u64{a} - b - scc;
            scc = d >> 32 != 0;
            return static_cast<u32>(d);
          }),
    entry(s_min_i32,
          [](i32 a, i32 b, bool& scc) {
            scc = a < b;
            return scc ? a : b;
          }),
    entry(s_min_u32,
          [](u32 a, u32 b, bool& scc) {
            scc = a < b;
            return scc ? a : b;
          }),
    entry(s_max_i32,
          [](i32 a, i32 b, bool& scc) {
            scc = a >= b;
            return scc ? a : b;
          }),
    entry(s_max_u32,
          [](u32 a, u32 b, bool& scc) {
            scc = a >= b;
            return scc ? a : b;
          }),
    entry(s_mul_i32, [](u32 a, u32 b) { return a * b; }),
    entry(s_mul_hi_u32, [](u32 a, u32 b) { return static_cast<u32>(u64{a} * b >> 32); }),
    entry(s_mul_hi_i32, [](i32 a, i32 b) { return static_cast<u32>(i64{a} * b >> 32); }),
    entry(s_absdiff_i32,
          [](u32 a, u32 b, bool& scc) {
            const u32 d = a - b;
            return tested(d >> 31 ? 0 - d : d, scc);
          }),
    entry(s_abs_i32, [](u32 a, bool& scc) { return tested(a >> 31 ? 0 - a : a, scc); }),
    entry(s_lshl1_add_u32, [](u32 a, u32 b, bool& scc) { return shift_add<1>(a, b, scc); }),
    entry(s_lshl2_add_u32, [](u32 a, u32 b, bool& scc) { return shift_add<2>(a, b, scc); }),
    entry(s_lshl3_add_u32, [](u32 a, u32 b, bool& scc) { return shift_add<3>(a, b, scc); }),
    entry(s_lshl4_add_u32, [](u32 a, u32 b, bool& scc) { return shift_add<4>(a, b, scc); }),
    entry(s_addk_i32,
          [](Old<u32> d, Imm k, bool& scc) {
            const u32 r = d.value + k.value;
            scc = (~(d.value ^ k.value) & (d.value ^ r)) >> 31;
            return r;
          }),
    entry(s_mulk_i32, [](Old<u32> d, Imm k) { return d.value * k.value; }),
    entry(s_movk_i32, [](Imm k) { return k.value; }),
    entry(s_cmovk_i32, [](Old<u32> d, Imm k, bool& scc) { return scc ? k.value : d.value; }),
};

constexpr Entry kLogic[] = {
    entry(s_and_b32, [](u32 a, u32 b, bool& scc) { return tested(a & b, scc); }),
    entry(s_and_b64, [](u64 a, u64 b, bool& scc) { return tested(a & b, scc); }),
    entry(s_or_b32, [](u32 a, u32 b, bool& scc) { return tested(a | b, scc); }),
    entry(s_or_b64, [](u64 a, u64 b, bool& scc) { return tested(a | b, scc); }),
    entry(s_xor_b32, [](u32 a, u32 b, bool& scc) { return tested(a ^ b, scc); }),
    entry(s_xor_b64, [](u64 a, u64 b, bool& scc) { return tested(a ^ b, scc); }),
    entry(s_andn2_b32, [](u32 a, u32 b, bool& scc) { return tested(a & ~b, scc); }),
    entry(s_andn2_b64, [](u64 a, u64 b, bool& scc) { return tested(a & ~b, scc); }),
    entry(s_orn2_b32, [](u32 a, u32 b, bool& scc) { return tested(a | ~b, scc); }),
    entry(s_orn2_b64, [](u64 a, u64 b, bool& scc) { return tested(a | ~b, scc); }),
    entry(s_nand_b32, [](u32 a, u32 b, bool& scc) { return tested(~(a & b), scc); }),
    entry(s_nand_b64, [](u64 a, u64 b, bool& scc) { return tested(~(a & b), scc); }),
    entry(s_nor_b32, [](u32 a, u32 b, bool& scc) { return tested(~(a | b), scc); }),
    entry(s_nor_b64, [](u64 a, u64 b, bool& scc) { return tested(~(a | b), scc); }),
    entry(s_xnor_b32, [](u32 a, u32 b, bool& scc) { return tested(~(a ^ b), scc); }),
    entry(s_xnor_b64, [](u64 a, u64 b, bool& scc) { return tested(~(a ^ b), scc); }),
    entry(s_not_b32, [](u32 a, bool& scc) { return tested(~a, scc); }),
    entry(s_not_b64, [](u64 a, bool& scc) { return tested(~a, scc); }),
    entry(s_and_saveexec_b64, [](u64 a, Wave& w) { return save_exec(w, a & w.exec()); }),
    entry(s_or_saveexec_b64, [](u64 a, Wave& w) { return save_exec(w, a | w.exec()); }),
    entry(s_xor_saveexec_b64, [](u64 a, Wave& w) { return save_exec(w, a ^ w.exec()); }),
    entry(s_andn2_saveexec_b64, [](u64 a, Wave& w) { return save_exec(w, a & ~w.exec()); }),
    entry(s_orn2_saveexec_b64, [](u64 a, Wave& w) { return save_exec(w, a | ~w.exec()); }),
    entry(s_nand_saveexec_b64, [](u64 a, Wave& w) { return save_exec(w, ~(a & w.exec())); }),
    entry(s_nor_saveexec_b64, [](u64 a, Wave& w) { return save_exec(w, ~(a | w.exec())); }),
    entry(s_xnor_saveexec_b64, [](u64 a, Wave& w) { return save_exec(w, ~(a ^ w.exec())); }),
    entry(s_andn1_saveexec_b64, [](u64 a, Wave& w) { return save_exec(w, ~a & w.exec()); }),
    entry(s_orn1_saveexec_b64, [](u64 a, Wave& w) { return save_exec(w, ~a | w.exec()); }),
    entry(s_andn1_wrexec_b64, [](u64 a, Wave& w) { return write_exec(w, ~a & w.exec()); }),
    entry(s_andn2_wrexec_b64, [](u64 a, Wave& w) { return write_exec(w, a & ~w.exec()); }),
};

constexpr Entry kBits[] = {
    entry(s_mov_b32, [](u32 a) { return a; }),
    entry(s_mov_b64, [](u64 a) { return a; }),
    entry(s_cmov_b32, [](u32 a, Old<u32> d, bool& scc) { return scc ? a : d.value; }),
    entry(s_cmov_b64, [](u64 a, Old<u64> d, bool& scc) { return scc ? a : d.value; }),
    entry(s_cselect_b32, [](u32 a, u32 b, bool& scc) { return scc ? a : b; }),
    entry(s_cselect_b64, [](u64 a, u64 b, bool& scc) { return scc ? a : b; }),
    entry(s_lshl_b32, [](u32 a, u32 b, bool& scc) { return tested(a << (b & 31), scc); }),
    entry(s_lshl_b64, [](u64 a, u32 b, bool& scc) { return tested(a << (b & 63), scc); }),
    entry(s_lshr_b32, [](u32 a, u32 b, bool& scc) { return tested(a >> (b & 31), scc); }),
    entry(s_lshr_b64, [](u64 a, u32 b, bool& scc) { return tested(a >> (b & 63), scc); }),
    entry(s_ashr_i32, [](i32 a, u32 b, bool& scc) { return tested(a >> (b & 31), scc); }),
    entry(s_ashr_i64, [](i64 a, u32 b, bool& scc) { return tested(a >> (b & 63), scc); }),
    entry(s_bfm_b32, [](u32 a, u32 b) { return mask_bits<u32>(a & 31) << (b & 31); }),
    entry(s_bfm_b64, [](u32 a, u32 b) { return mask_bits<u64>(a & 63) << (b & 63); }),
    entry(s_bfe_u32, [](u32 a, u32 b, bool& scc) { return tested(extract(a, b), scc); }),
    entry(s_bfe_u64, [](u64 a, u32 b, bool& scc) { return tested(extract(a, b), scc); }),
    entry(s_bfe_i32, [](u32 a, u32 b, bool& scc) { return tested(extract_signed(a, b), scc); }),
    entry(s_bfe_i64, [](i64 a, u32 b,
                        bool& scc) { return tested(extract_signed(static_cast<u64>(a), b), scc); }),
    entry(s_pack_ll_b32_b16, [](u32 a, u32 b) { return (a & 0xffff) | b << 16; }),
    entry(s_pack_lh_b32_b16, [](u32 a, u32 b) { return (a & 0xffff) | (b & 0xffff0000); }),
    entry(s_pack_hh_b32_b16, [](u32 a, u32 b) { return a >> 16 | (b & 0xffff0000); }),
    entry(s_wqm_b32, [](u32 a, bool& scc) { return tested(whole_quads(a), scc); }),
    entry(s_wqm_b64, [](u64 a, bool& scc) { return tested(whole_quads(a), scc); }),
    entry(s_quadmask_b32, [](u32 a, bool& scc) { return tested(quad_mask(a), scc); }),
    entry(s_quadmask_b64, [](u64 a, bool& scc) { return tested(quad_mask(a), scc); }),
    entry(s_brev_b32, [](u32 a) { return reverse(a); }),
    entry(s_brev_b64, [](u64 a) { return reverse(a); }),
    entry(s_bcnt0_i32_b32,
          [](u32 a, bool& scc) { return tested(static_cast<u32>(std::popcount(~a)), scc); }),
    entry(s_bcnt0_i32_b64,
          [](u64 a, bool& scc) { return tested(static_cast<u32>(std::popcount(~a)), scc); }),
    entry(s_bcnt1_i32_b32,
          [](u32 a, bool& scc) { return tested(static_cast<u32>(std::popcount(a)), scc); }),
    entry(s_bcnt1_i32_b64,
          [](u64 a, bool& scc) { return tested(static_cast<u32>(std::popcount(a)), scc); }),
    entry(s_ff0_i32_b32, [](u32 a) { return first_one(~a, 32); }),
    entry(s_ff0_i32_b64, [](u64 a) { return first_one(~a, 64); }),
    entry(s_ff1_i32_b32, [](u32 a) { return first_one(a, 32); }),
    entry(s_ff1_i32_b64, [](u64 a) { return first_one(a, 64); }),
    entry(s_flbit_i32_b32, [](u32 a) { return leading(a, 32); }),
    entry(s_flbit_i32_b64, [](u64 a) { return leading(a, 64); }),
    entry(s_flbit_i32, [](i32 a) { return leading(static_cast<u32>(a ^ a >> 31), 32); }),
    entry(s_flbit_i32_i64, [](i64 a) { return leading(static_cast<u64>(a ^ a >> 63), 64); }),
    entry(s_sext_i32_i8, [](u32 a) { return static_cast<i32>(static_cast<int8_t>(a)); }),
    entry(s_sext_i32_i16, [](u32 a) { return static_cast<i32>(static_cast<int16_t>(a)); }),
    entry(s_bitset0_b32, [](u32 a, Old<u32> d) { return d.value & ~(1u << (a & 31)); }),
    entry(s_bitset0_b64, [](u32 a, Old<u64> d) { return d.value & ~(u64{1} << (a & 63)); }),
    entry(s_bitset1_b32, [](u32 a, Old<u32> d) { return d.value | 1u << (a & 31); }),
    entry(s_bitset1_b64, [](u32 a, Old<u64> d) { return d.value | u64{1} << (a & 63); }),
    entry(s_bitreplicate_b64_b32, [](u32 a) { return replicate(a); }),
};

constexpr Entry kCompares[] = {
    entry(s_cmp_eq_i32, [](u32 a, u32 b, bool& scc) { scc = a == b; }),
    entry(s_cmp_lg_i32, [](u32 a, u32 b, bool& scc) { scc = a != b; }),
    entry(s_cmp_gt_i32, [](i32 a, i32 b, bool& scc) { scc = a > b; }),
    entry(s_cmp_ge_i32, [](i32 a, i32 b, bool& scc) { scc = a >= b; }),
    entry(s_cmp_lt_i32, [](i32 a, i32 b, bool& scc) { scc = a < b; }),
    entry(s_cmp_le_i32, [](i32 a, i32 b, bool& scc) { scc = a <= b; }),
    entry(s_cmp_eq_u32, [](u32 a, u32 b, bool& scc) { scc = a == b; }),
    entry(s_cmp_lg_u32, [](u32 a, u32 b, bool& scc) { scc = a != b; }),
    entry(s_cmp_gt_u32, [](u32 a, u32 b, bool& scc) { scc = a > b; }),
    entry(s_cmp_ge_u32, [](u32 a, u32 b, bool& scc) { scc = a >= b; }),
    entry(s_cmp_lt_u32, [](u32 a, u32 b, bool& scc) { scc = a < b; }),
    entry(s_cmp_le_u32, [](u32 a, u32 b, bool& scc) { scc = a <= b; }),
    entry(s_cmp_eq_u64, [](u64 a, u64 b, bool& scc) { scc = a == b; }),
    entry(s_cmp_lg_u64, [](u64 a, u64 b, bool& scc) { scc = a != b; }),
    entry(s_bitcmp0_b32, [](u32 a, u32 b, bool& scc) { scc = (a >> (b & 31) & 1) == 0; }),
    entry(s_bitcmp1_b32, [](u32 a, u32 b, bool& scc) { scc = (a >> (b & 31) & 1) == 1; }),
    entry(s_bitcmp0_b64, [](u64 a, u32 b, bool& scc) { scc = (a >> (b & 63) & 1) == 0; }),
    entry(s_bitcmp1_b64, [](u64 a, u32 b, bool& scc) { scc = (a >> (b & 63) & 1) == 1; }),
    entry(s_cmpk_eq_i32, [](Old<u32> a, Imm k, bool& scc) { scc = a.value == k.value; }),
    entry(s_cmpk_lg_i32, [](Old<u32> a, Imm k, bool& scc) { scc = a.value != k.value; }),
    entry(s_cmpk_gt_i32,
          [](Old<i32> a, Imm k, bool& scc) { scc = a.value > static_cast<i32>(k.value); }),
    entry(s_cmpk_ge_i32,
          [](Old<i32> a, Imm k, bool& scc) { scc = a.value >= static_cast<i32>(k.value); }),
    entry(s_cmpk_lt_i32,
          [](Old<i32> a, Imm k, bool& scc) { scc = a.value < static_cast<i32>(k.value); }),
    entry(s_cmpk_le_i32,
          [](Old<i32> a, Imm k, bool& scc) { scc = a.value <= static_cast<i32>(k.value); }),
    entry(s_cmpk_eq_u32, [](Old<u32> a, Imm k, bool& scc) { scc = a.value == k.value; }),
    entry(s_cmpk_lg_u32, [](Old<u32> a, Imm k, bool& scc) { scc = a.value != k.value; }),
    entry(s_cmpk_gt_u32, [](Old<u32> a, Imm k, bool& scc) { scc = a.value > k.value; }),
    entry(s_cmpk_ge_u32, [](Old<u32> a, Imm k, bool& scc) { scc = a.value >= k.value; }),
    entry(s_cmpk_lt_u32, [](Old<u32> a, Imm k, bool& scc) { scc = a.value < k.value; }),
    entry(s_cmpk_le_u32, [](Old<u32> a, Imm k, bool& scc) { scc = a.value <= k.value; }),
};

constexpr auto kTable = [] {
  std::array<const Entry*, kOpcodeCount> table{};
  const auto add = [&](const auto& entries) {
    for (const Entry& each : entries) table[static_cast<size_t>(each.opcode)] = &each;
  };
  add(kArithmetic);
  add(kLogic);
  add(kBits);
  add(kCompares);
  return table;
}();

}  // namespace

Handler translate_alu(Instruction& in) noexcept {
  const Entry* entry = kTable[static_cast<size_t>(in.opcode)];
  if (entry == nullptr) return nullptr;
  // EXEC_HI is the last register before the inline constants.
  if (entry->wide_result && in.dst >= kExecLo + 1) return nullptr;
  Staging staging = Staging::none;
  if (in.format != Format::sopk) {
    for (const OperandCode code : in.src) {
      if (code == kLiteral && staging == Staging::none) staging = Staging::literal;
      if (code >= kVccz && code <= kScc) staging = Staging::status;
    }
  }
  return entry->handler[static_cast<size_t>(staging)];
}

}  // namespace uptempo::vgpu::gfx9::scalar
