// Packed instructions in one pass: halves of a register (float16, 16-bit integers) or the two registers of packed float32, with op_sel,
// op_sel_hi, neg and neg_hi. The general handler takes clamp and unusual MODE.

// Per-target include guard.
#if defined(UPTEMPO_VGPU_GFX9_PACKED_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef UPTEMPO_VGPU_GFX9_PACKED_INL_HPP
#undef UPTEMPO_VGPU_GFX9_PACKED_INL_HPP
#else
#define UPTEMPO_VGPU_GFX9_PACKED_INL_HPP
#endif

#include "gfx9/vector/instruction-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {

template <class Signature, unsigned kFlags, class F>
struct PackedInstr;

template <class R, class... S, unsigned kFlags, class F>
struct PackedInstr<R(S...), kFlags, F> {
  using Plain = Instr<R(S...), kFlags, F>;
  static constexpr bool kDwords = R::type == Type::f32;
  static constexpr bool kWide = Plain::kWide;
  using Indices = std::index_sequence_for<S...>;

  struct OperandOf {
    const Wave& wave;
    const Instruction& in;
    unsigned i;
  };
  // One operand: which half each result half takes, and its sign.
  struct Operand {
    Operand(const OperandOf& of) : source(of.wave, of.in, of.i, type(of)) {
      const Instruction& in = of.in;
      const unsigned i = of.i;
      const bool selects = in.format == Format::vop3p;
      const unsigned select[2] = {selects ? in.op_sel >> i & 1u : 0u, selects ? in.op_sel_hi >> i & 1u : 1u};
      const unsigned negate[2] = {selects ? in.neg >> i & 1u : 0u, selects ? in.neg_hi >> i & 1u : 0u};
      for (unsigned h = 0; h < 2; ++h) {
        // A 32-bit constant is both halves of a pair of registers.
        from[h] = source.half[kDwords ? select[h] : 0];
        shift[h] = kDwords ? 0 : static_cast<int>(select[h] * 16);
        flip[h] = negate[h] ? (kDwords ? 0x80000000u : 0x8000u) : 0u;
      }
    }
    static Type type(const OperandOf& of) {
      const unsigned code = of.in.src[of.i];
      constexpr Type kTypes[] = {S::type...};
      return kDwords && code < 128 ? Type::u64 : kTypes[of.i];
    }
    HWY_INLINE Image<kWide> image(unsigned h, std::size_t lane) const {
      const D32<kWide> d;
      auto v = hn::Load(d, from[h] + lane);
      if constexpr (!kDwords) v = hn::ShiftRightSame(v, shift[h]);
      v = hn::Xor(v, hn::Set(d, flip[h]));
      return {v, v};
    }
    AnySource source;
    const std::uint32_t* from[2];
    int shift[2];
    std::uint32_t flip[2];
  };

  static const Op* run(const Op& op, Wave& wave) { return run(op, wave, Indices{}); }
  template <std::size_t... I>
  static const Op* run(const Op& op, Wave& wave, std::index_sequence<I...>) {
    if (op.in.clamp || (wave.mode & Plain::kModeMask) != Plain::kModeUsual) [[unlikely]]
      return general(op, wave);
    const std::tuple<typename Same<S>::type...> operands{OperandOf{wave, op.in, static_cast<unsigned>(I)}...};
    const auto half = [&](unsigned h, std::size_t lane) HWY_ATTR {
      return Repr<R, kWide>::encode(F{}(Repr<S, kWide>::decode(std::get<I>(operands).image(h, lane))...)).lo;
    };
    const std::uint64_t exec = wave.exec();
    std::uint32_t* const to = vgpr(wave, op.in.dst);
    const D32<kWide> d;
    for (std::size_t lane = 0; lane < kLanes; lane += Plain::kStep) {
      const auto lo = half(0, lane);
      const auto hi = half(1, lane);
      if constexpr (kDwords) {
        store<false>(d, lo, exec, to, lane);
        store<false>(d, hi, exec, to + kLanes, lane);
      } else {
        store<false>(d, hn::Or(lo, hn::ShiftLeft<16>(hi)), exec, to, lane);
      }
    }
    return next(op);
  }
  template <class>
  struct Same {
    using type = Operand;
  };
};

template <class Signature, unsigned kFlags, class F>
constexpr Entry as_packed(Entry e) {
  e.packing = PackedInstr<Signature, kFlags, F>::kDwords ? Packing::dwords : Packing::halves;
  e.modified = &PackedInstr<Signature, kFlags, F>::run;
  return e;
}

// One line of a family's table.
template <class Signature, unsigned kFlags = 0, class F>
constexpr Entry pk(Opcode opcode, F f) {
  return as_packed<Signature, kFlags, F>(op<Signature, kFlags | kCold>(opcode, f));
}
template <class Signature, unsigned kFlags = 0, class F, class G>
constexpr Entry pk(Opcode opcode, F f, G saturating) {
  return as_packed<Signature, kFlags, F>(op<Signature, kFlags | kCold>(opcode, f, saturating));
}

}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
