// Packed instructions in one pass: halves of a register (float16, 16-bit integers) or the two
// registers of packed float32, with op_sel, op_sel_hi, neg and neg_hi. The general handler serves
// clamp and unusual MODE.

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
  static_assert(std::is_empty_v<F>);
  using Plain = Instr<R(S...), kFlags, F>;
  static constexpr bool kDwords = R::kType == Type::f32;
  static constexpr bool kWide = Plain::kWide;
  using Indices = std::index_sequence_for<S...>;

  // One operand: the source and sign of each half of the result.
  struct Operand {
    HWY_INLINE Image<kWide> image(unsigned h, size_t lane) const {
      const D32<kWide> d;
      auto v = hn::Load(d, from[h] + lane);
      if constexpr (!kDwords) v = hn::ShiftRightSame(v, shift[h]);
      v = hn::Xor(v, h == 0 ? flip_low : flip_high);
      return {v, v};
    }
    const uint32_t* from[2];
    int shift[2];
    V32<kWide> flip_low, flip_high;
  };
  static HWY_INLINE Operand operand(const Wave& wave, const Instruction& in, unsigned i, Type type,
                                    Vgpr (&room)[2]) {
    const D32<kWide> d;
    const bool selects = in.format == Format::vop3p;
    const unsigned low = selects ? in.op_sel >> i & 1u : 0u;
    const unsigned high = selects ? in.op_sel_hi >> i & 1u : 1u;
    const uint32_t sign = kDwords ? 0x80000000u : 0x8000u;
    // A scalar pair has two registers. A 32-bit constant serves as both halves.
    const Registers source =
        registers_of(wave, in, i, kDwords && in.src[i] < kFirstConstant ? Type::u64 : type, room);
    return {{source.half[kDwords ? low : 0], source.half[kDwords ? high : 0]},
            {kDwords ? 0 : static_cast<int>(low * 16), kDwords ? 0 : static_cast<int>(high * 16)},
            hn::Set(d, selects && (in.neg >> i & 1) ? sign : 0u),
            hn::Set(d, selects && (in.neg_hi >> i & 1) ? sign : 0u)};
  }

  static const Op* run(const Op& op, Wave& wave) { return run(op, wave, Indices{}); }
  template <size_t... I>
  static const Op* run(const Op& op, Wave& wave, std::index_sequence<I...>) {
    if (op.in.clamp || (wave.mode & Plain::kModeMask) != Plain::kModeUsual) [[unlikely]]
      return general(op, wave);
    Vgpr room[3][2];
    const std::tuple operands{operand(wave, op.in, I, S::kType, room[I])...};
    const auto half = [operands](unsigned h, size_t lane) HWY_ATTR {
      return Repr<R, kWide>::encode(
                 F{}(Repr<S, kWide>::decode(std::get<I>(operands).image(h, lane))...))
          .lo;
    };
    const uint64_t exec = wave.exec();
    uint32_t* const to = vgpr(wave, op.in.dst);
    const D32<kWide> d;
    for (size_t lane = 0; lane < kLanes; lane += Plain::kStep) {
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
};

template <class Signature, unsigned kFlags, class F>
constexpr Entry as_packed(Entry e) {
  e.packing = PackedInstr<Signature, kFlags, F>::kDwords ? Packing::dwords : Packing::halves;
  e.modified = &PackedInstr<Signature, kFlags, F>::run;
  return e;
}

// Defines one line of a family's table.
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
