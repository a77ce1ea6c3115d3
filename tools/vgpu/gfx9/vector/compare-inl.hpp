// Comparisons of all types, from one list of relations.

// Per-target include guard.
#if defined(UPTEMPO_VGPU_GFX9_COMPARE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef UPTEMPO_VGPU_GFX9_COMPARE_INL_HPP
#undef UPTEMPO_VGPU_GFX9_COMPARE_INL_HPP
#else
#define UPTEMPO_VGPU_GFX9_COMPARE_INL_HPP
#endif

#include "gfx9/vector/instruction-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {
namespace {

inline constexpr auto cmp_f = [](auto a, auto) HWY_ATTR { return hn::Lt(a, a); };
inline constexpr auto cmp_lt = [](auto a, auto b) HWY_ATTR { return hn::Lt(a, b); };
inline constexpr auto cmp_eq = [](auto a, auto b) HWY_ATTR { return hn::Eq(a, b); };
inline constexpr auto cmp_gt = [](auto a, auto b) HWY_ATTR { return hn::Lt(b, a); };
inline constexpr auto cmp_nge = [](auto a, auto b) HWY_ATTR { return hn::Not(hn::Le(b, a)); };
inline constexpr auto cmp_nlt = [](auto a, auto b) HWY_ATTR { return hn::Not(hn::Lt(a, b)); };
inline constexpr auto cmp_neq = [](auto a, auto b) HWY_ATTR { return hn::Not(hn::Eq(a, b)); };
inline constexpr auto cmp_ngt = [](auto a, auto b) HWY_ATTR { return hn::Not(hn::Lt(b, a)); };
inline constexpr auto cmp_nle = [](auto a, auto b) HWY_ATTR { return hn::Not(hn::Le(a, b)); };
inline constexpr auto cmp_t = [](auto a, auto) HWY_ATTR { return hn::Not(hn::Lt(a, a)); };
inline constexpr auto cmp_le = [](auto a, auto b) HWY_ATTR { return hn::Le(a, b); };
inline constexpr auto cmp_ge = [](auto a, auto b) HWY_ATTR { return hn::Le(b, a); };
// Less or greater, and its opposite.
inline constexpr auto cmp_lg = [](auto a, auto b)
                                   HWY_ATTR { return hn::Or(hn::Lt(a, b), hn::Lt(b, a)); };
inline constexpr auto cmp_nlg = [](auto a, auto b) HWY_ATTR {
  return hn::Not(hn::Or(hn::Lt(a, b), hn::Lt(b, a)));
};
// Ordered, unordered.
inline constexpr auto cmp_o = [](auto a, auto b)
                                  HWY_ATTR { return hn::And(hn::Eq(a, a), hn::Eq(b, b)); };
inline constexpr auto cmp_u = [](auto a, auto b)
                                  HWY_ATTR { return hn::Not(hn::And(hn::Eq(a, a), hn::Eq(b, b))); };

// The relations in the order of their encodings.
template <class T, unsigned kFlags>
constexpr std::array<Entry, 8> integer_compares(const std::array<Opcode, 8>& opcodes) {
  using S = Bit(T, T);
  return {op<S, kFlags | kCold>(opcodes[0], cmp_f), op<S, kFlags>(opcodes[1], cmp_lt),
          op<S, kFlags>(opcodes[2], cmp_eq),        op<S, kFlags>(opcodes[3], cmp_ngt),
          op<S, kFlags>(opcodes[4], cmp_gt),        op<S, kFlags>(opcodes[5], cmp_neq),
          op<S, kFlags>(opcodes[6], cmp_nlt),       op<S, kFlags | kCold>(opcodes[7], cmp_t)};
}
template <class T, unsigned kFlags>
constexpr std::array<Entry, 16> float_compares(const std::array<Opcode, 16>& opcodes) {
  using S = Bit(T, T);
  return {op<S, kFlags | kCold>(opcodes[0], cmp_f), op<S, kFlags>(opcodes[1], cmp_lt),
          op<S, kFlags>(opcodes[2], cmp_eq),        op<S, kFlags>(opcodes[3], cmp_le),
          op<S, kFlags>(opcodes[4], cmp_gt),        op<S, kFlags>(opcodes[5], cmp_lg),
          op<S, kFlags>(opcodes[6], cmp_ge),        op<S, kFlags>(opcodes[7], cmp_o),
          op<S, kFlags>(opcodes[8], cmp_u),         op<S, kFlags>(opcodes[9], cmp_nge),
          op<S, kFlags>(opcodes[10], cmp_nlg),      op<S, kFlags>(opcodes[11], cmp_ngt),
          op<S, kFlags>(opcodes[12], cmp_nle),      op<S, kFlags>(opcodes[13], cmp_neq),
          op<S, kFlags>(opcodes[14], cmp_nlt),      op<S, kFlags | kCold>(opcodes[15], cmp_t)};
}

// Whether the value, given as bits, is in one of the classes of `wanted`: signalling NaN, quiet
// NaN, -infinity, -normal, -denormal, -0, +0, ...
template <class D>
HWY_INLINE auto in_class(D d, hn::Vec<D> bits, hn::Vec<D> wanted, hn::TFromD<D> sign,
                         hn::TFromD<D> infinity, hn::TFromD<D> quiet) {
  using T = hn::TFromD<D>;
  const auto set = [&](T x) HWY_ATTR { return hn::Set(d, x); };
  const auto magnitude = hn::AndNot(set(sign), bits);
  const auto negative = hn::Ne(hn::And(bits, set(sign)), hn::Zero(d));
  const auto zero = hn::Eq(magnitude, hn::Zero(d));
  const auto denormal = hn::Eq(hn::And(bits, set(infinity)), hn::Zero(d));
  const auto infinite = hn::Eq(magnitude, set(infinity));
  // The sign bit is clear: signed comparison.
  const hn::RebindToSigned<D> di;
  const auto nan = hn::Gt(hn::BitCast(di, magnitude), hn::BitCast(di, set(infinity)));
  const auto choose = [&](T minus, T plus)
                          HWY_ATTR { return hn::IfThenElse(negative, set(minus), set(plus)); };
  auto one_hot = hn::IfThenElse(infinite, choose(4, 512), choose(8, 256));
  one_hot = hn::IfThenElse(denormal, choose(16, 128), one_hot);
  one_hot = hn::IfThenElse(zero, choose(32, 64), one_hot);
  const auto is_quiet = hn::Ne(hn::And(bits, set(quiet)), hn::Zero(d));
  one_hot =
      hn::IfThenElse(hn::RebindMask(d, nan), hn::IfThenElse(is_quiet, set(2), set(1)), one_hot);
  return hn::Ne(hn::And(one_hot, wanted), hn::Zero(d));
}

}  // namespace
}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
