// Makes an Entry from "op<F32(F32, F32)>(Opcode::v_add_f32, add)": the core and the fast handlers
// of one instruction, for each SIMD target.
//
// The function takes one vector per operand, of the type in its signature: float lanes for F32 and
// F16, int32 lanes for I32 and I16, uint32 lanes for U32 and U16, 64-bit lanes for the wide types,
// a mask for Bit, uint32 lanes with the lanes' numbers for LaneId. It returns a vector, a mask
// (result type Bit) or a Carried. The hot loops call it with the registers' chunks. Nothing else is
// generated per instruction.

// Per-target include guard.
#if defined(UPTEMPO_VGPU_GFX9_INSTRUCTION_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef UPTEMPO_VGPU_GFX9_INSTRUCTION_INL_HPP
#undef UPTEMPO_VGPU_GFX9_INSTRUCTION_INL_HPP
#else
#define UPTEMPO_VGPU_GFX9_INSTRUCTION_INL_HPP
#endif

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "gfx9/vector/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {

// Executes any instruction that has an entry: stages the operands and runs the core.
const Op* general(const Op& op, Wave& wave);

template <class V, class M>
struct Carried {
  V value;
  M carry;
};
template <class V, class M>
Carried(V, M) -> Carried<V, M>;

// The registers of operand i, [half].
inline uint32_t* vgpr(const Wave& wave, unsigned index) { return wave.vgpr[index].lane; }

// Processors with only the baseline are rare. There, one handler serves all combinations of vector
// and scalar sources, and its loops are not unrolled.
#if HWY_TARGET == HWY_SSE4
inline constexpr bool kEachCombination = false;
#undef UPTEMPO_VGPU_UNROLL_LANES
#define UPTEMPO_VGPU_UNROLL_LANES HWY_UNROLL(1)
#else
inline constexpr bool kEachCombination = true;
#undef UPTEMPO_VGPU_UNROLL_LANES
#define UPTEMPO_VGPU_UNROLL_LANES HWY_UNROLL(4)
#endif

enum class Kind { vgpr, scalar };

// One operand of a fast handler.
template <class Tag, bool Wide, Kind kKind>
class Source {
 public:
  static constexpr bool kTwo = is_wide(Tag::kType);

  Source(const Wave& wave, const Instruction& in, unsigned i) {
    if constexpr (kKind == Kind::vgpr) {
      lo_ = vgpr(wave, in.src[i] - kFirstVgpr);
    } else {
      set(static_cast<uint32_t>(value(wave, in, i)),
          static_cast<uint32_t>(value(wave, in, i) >> 32));
    }
  }
  HWY_INLINE Image<Wide> image(size_t lane) const {
    if constexpr (kKind == Kind::vgpr) {
      const D32<Wide> d;
      const auto lo = hn::Load(d, lo_ + lane);
      if constexpr (kTwo) {
        return {lo, hn::Load(d, lo_ + kLanes + lane)};
      } else {
        return {lo, lo};
      }
    } else {
      return {hn::Set(D32<Wide>{}, scalar_[0]), hn::Set(D32<Wide>{}, scalar_[kTwo ? 1 : 0])};
    }
  }

 private:
  static HWY_INLINE uint64_t value(const Wave& wave, const Instruction& in, unsigned i) {
    const unsigned code = in.src[i];
    if constexpr (kTwo) {
      if (code >= kFirstConstant) return scalar_operand(wave, in, i, Tag::kType);
      return wave.pair(code);
    } else {
      return code == kLiteral ? in.literal : wave.scalar[code];
    }
  }
  void set(uint32_t lo, uint32_t hi) {
    scalar_[0] = lo;
    scalar_[1] = hi;
  }

  const uint32_t* lo_ = nullptr;
  uint32_t scalar_[2] = {};
};

// An operand of any kind. A scalar is broadcast to a register.
struct Registers {
  const uint32_t* half[2];
};
HWY_NOINLINE inline Registers spread(const Wave& wave, const Instruction& in, unsigned i, Type type,
                                     Vgpr (&room)[2]) {
  const D32<false> d;
  const uint64_t value = scalar_operand(wave, in, i, type);
  for (unsigned h = 0; h < (is_wide(type) ? 2u : 1u); ++h) {
    const auto v = hn::Set(d, static_cast<uint32_t>(value >> (32 * h)));
    for (size_t lane = 0; lane < kLanes; lane += hn::MaxLanes(d))
      hn::Store(v, d, room[h].lane + lane);
  }
  return {{room[0].lane, room[is_wide(type) ? 1 : 0].lane}};
}
HWY_INLINE Registers registers_of(const Wave& wave, const Instruction& in, unsigned i, Type type,
                                  Vgpr (&room)[2]) {
  if (!is_vgpr(in.src[i])) [[unlikely]]
    return spread(wave, in, i, type, room);
  const uint32_t* const lo = vgpr(wave, in.src[i] - kFirstVgpr);
  return {{lo, lo + kLanes}};
}

template <class Signature, unsigned kFlags, class F>
struct Instr;

template <class R, class... S, unsigned kFlags, class F>
struct Instr<R(S...), kFlags, F> {
  static_assert(
      std::is_empty_v<F>,
      "pass a function object, not a pointer: the core default-constructs it from its type");
  static constexpr bool kWide =
      (kFlags & vector::kWide) || is_wide(R::kType) || (is_wide(S::kType) || ...);
  static constexpr size_t kStep = kChunk<kWide>;
  static constexpr unsigned kSources =
      (0u + ... + (S::kType != Type::bit && S::kType != Type::none ? 1u : 0u));
  static constexpr bool kCompare = R::kType == Type::bit;
  static constexpr bool kTwo = is_wide(R::kType);
  static constexpr bool kHasMask = ((S::kType == Type::bit) || ...);
  using Indices = std::index_sequence_for<S...>;
  template <class T>
  struct Plain {
    using type = T;
  };
  template <class T>
  struct Plain<WithCarry<T>> {
    using type = T;
  };
  using Result = typename Plain<R>::type;
  static constexpr bool kCarry = !std::is_same_v<Result, R>;

  static constexpr uint32_t kModeMask =
      (kFlags & kExact)
          ? 0u
          : mode_mask(R::kType) | (0u | ... | mode_mask(S::kType)) |
                ((kFlags & kIeee) ? kModeIeee : 0u) | (R::kType == Type::f16 ? kModeFp16Ovfl : 0u);
  static constexpr uint32_t kModeUsual =
      (kFlags & kExact) ? 0u
                        : mode_usual(R::kType) | (0u | ... | mode_usual(S::kType)) |
                              ((kFlags & kIeee) ? kModeIeee : 0u);

  // Index in src[] of the function's operand I. Masks and lane numbers are not counted, except that
  // a mask after two operands is src[2].
  template <size_t I>
  static constexpr unsigned index() {
    constexpr Type kTypes[] = {S::kType..., Type::none};
    unsigned n = 0;
    for (size_t i = 0; i < I; ++i) n += kTypes[i] != Type::bit && kTypes[i] != Type::none;
    return n;
  }
  static constexpr int kMaskSource = !kHasMask ? -1 : kSources == 3 ? 3 : 2;

  template <class Tag>
  static HWY_INLINE auto operand(Image<kWide> image, uint64_t mask, size_t lane) {
    if constexpr (Tag::kType == Type::bit) {
      return mask_at(typename MaskLanes::type{}, mask, lane);
    } else if constexpr (Tag::kType == Type::none) {
      return hn::Iota(D32<kWide>{}, static_cast<uint32_t>(lane));
    } else {
      return Repr<Tag, kWide>::decode(image);
    }
  }
  // The lanes to which masks of the function refer: those of its result, or those of its sources in
  // a comparison.
  struct MaskLanes {
    using Float = std::conditional_t<kTwo, hn::RebindToFloat<D64>, hn::Rebind<float, D32<kWide>>>;
    using Unsigned = std::conditional_t<kTwo, D64, D32<kWide>>;
    using Signed = hn::RebindToSigned<Unsigned>;
    using type = std::conditional_t<
        is_float(R::kType), Float,
        std::conditional_t<R::kType == Type::i32 || R::kType == Type::i64 || R::kType == Type::i16,
                           Signed, Unsigned>>;
  };
  // In a comparison: as wide as its operands.
  static constexpr Type kFirst = std::get<0>(std::tuple{S::kType..., Type::none});
  struct CompareLanes {
    using Unsigned = std::conditional_t<is_wide(kFirst), D64, D32<kWide>>;
    using type = std::conditional_t<
        is_float(kFirst), hn::RebindToFloat<Unsigned>,
        std::conditional_t<kFirst == Type::i32 || kFirst == Type::i64 || kFirst == Type::i16,
                           hn::RebindToSigned<Unsigned>, Unsigned>>;
  };

  // Computes one chunk of lanes and writes its values. Returns the bits of a compare or carry.
  template <bool kFull, class Fetch>
  static HWY_INLINE uint64_t chunk(Fetch fetch, uint64_t mask, uint64_t exec, uint32_t* lo,
                                   uint32_t* hi, size_t lane) {
    const auto result = fetch(lane, mask);
    if constexpr (kCompare) {
      return bits_of(typename CompareLanes::type{}, result) << lane;
    } else if constexpr (kCarry) {
      write<kFull>(result.value, exec, lo, hi, lane);
      return bits_of(typename MaskLanes::type{}, result.carry) << lane;
    } else {
      write<kFull>(result, exec, lo, hi, lane);
      return 0;
    }
  }
  template <bool kFull, class Fetch>
  static HWY_INLINE uint64_t loop(Fetch fetch, uint64_t mask, uint64_t exec, uint32_t* lo,
                                  uint32_t* hi) {
    uint64_t out = 0;
    UPTEMPO_VGPU_UNROLL_LANES
    for (size_t lane = 0; lane < kLanes; lane += kStep)
      out |= chunk<kFull>(fetch, mask, exec, lo, hi, lane);
    return out;
  }
  template <bool kFull, class V>
  static HWY_INLINE void write(V value, uint64_t exec, uint32_t* lo, uint32_t* hi, size_t lane) {
    const Image<kWide> image = Repr<Result, kWide>::encode(value);
    store<kFull>(D32<kWide>{}, image.lo, exec, lo, lane);
    if constexpr (kTwo) store<kFull>(D32<kWide>{}, image.hi, exec, hi, lane);
  }

  static void core(Lanes& lanes) { core(lanes, Indices{}); }
  template <size_t... I>
  static void core(Lanes& lanes, std::index_sequence<I...>) {
    const D32<kWide> d;
    const auto fetch = [&](size_t lane, uint64_t mask) HWY_ATTR {
      const auto image = [&](unsigned i, bool two, bool real) HWY_ATTR -> Image<kWide> {
        if (!real) return {hn::Zero(d), hn::Zero(d)};
        const auto v = hn::Load(d, lanes.src[i][0] + lane);
        return {v, two ? hn::Load(d, lanes.src[i][1] + lane) : v};
      };
      return F{}(operand<S>(
          image(index<I>(), is_wide(S::kType), S::kType != Type::bit && S::kType != Type::none),
          mask, lane)...);
    };
    uint64_t out = 0;
    HWY_UNROLL(1)  // staging the operands costs more than the loop
    for (size_t lane = 0; lane < kLanes; lane += kStep)
      out |= chunk<true>(fetch, lanes.mask_in, 0, lanes.dst[0], lanes.dst[1], lane);
    lanes.mask_out = out;
  }

  template <unsigned kScalars>
  static const Op* fast(const Op& op, Wave& wave) {
    return fast<kScalars>(op, wave, Indices{});
  }
  template <unsigned kScalars, size_t... I>
  static const Op* fast(const Op& op, Wave& wave, std::index_sequence<I...>) {
    if constexpr (kModeMask != 0) {
      if ((wave.mode & kModeMask) != kModeUsual) [[unlikely]]
        return general(op, wave);
    }
    const Instruction& in = op.in;
    const std::tuple sources{
        make_source<S, (kScalars >> index<I>() & 1) != 0>(wave, in, index<I>())...};
    const auto fetch = [&](size_t lane, uint64_t mask) HWY_ATTR {
      return F{}(operand<S>(std::get<I>(sources).image(lane), mask, lane)...);
    };
    finish(op, wave, fetch);
    return next(op);
  }
  // Operands of any kind, a scalar broadcast to a register. Used where handlers for each
  // combination are not worth their compile time.
  static const Op* any(const Op& op, Wave& wave) { return any(op, wave, Indices{}); }
  template <size_t... I>
  static const Op* any(const Op& op, Wave& wave, std::index_sequence<I...>) {
    if constexpr (kModeMask != 0) {
      if ((wave.mode & kModeMask) != kModeUsual) [[unlikely]]
        return general(op, wave);
    }
    Vgpr room[3][2];
    const std::tuple sources{
        any_source<S>(wave, op.in, index<I>(), room[index<I>() < 3 ? index<I>() : 0])...};
    const auto fetch = [&](size_t lane, uint64_t mask) HWY_ATTR {
      return F{}(operand<S>(std::get<I>(sources).image(lane), mask, lane)...);
    };
    finish(op, wave, fetch);
    return next(op);
  }
  template <class Tag>
  struct AnySource {
    HWY_INLINE Image<kWide> image(size_t lane) const {
      const auto v = hn::Load(D32<kWide>{}, from.half[0] + lane);
      if constexpr (is_wide(Tag::kType)) {
        return {v, hn::Load(D32<kWide>{}, from.half[1] + lane)};
      } else {
        return {v, v};
      }
    }
    Registers from;
  };
  template <class Tag>
  static HWY_INLINE auto any_source(const Wave& wave, const Instruction& in, unsigned i,
                                    Vgpr (&room)[2]) {
    if constexpr (Tag::kType == Type::bit || Tag::kType == Type::none) {
      return NoSource{};
    } else {
      return AnySource<Tag>{registers_of(wave, in, i, Tag::kType, room)};
    }
  }

  struct NoSource {
    HWY_INLINE Image<kWide> image(size_t) const {
      return {hn::Zero(D32<kWide>{}), hn::Zero(D32<kWide>{})};
    }
  };
  template <class Tag, bool kScalar>
  static HWY_INLINE auto make_source(const Wave& wave, const Instruction& in, unsigned i) {
    if constexpr (Tag::kType == Type::bit || Tag::kType == Type::none) {
      return NoSource{};
    } else {
      return Source < Tag, kWide, kScalar ? Kind::scalar : Kind::vgpr > (wave, in, i);
    }
  }

  template <class Fetch>
  static HWY_INLINE void finish(const Op& op, Wave& wave, Fetch fetch) {
    const Instruction& in = op.in;
    const uint64_t exec = wave.exec();
    uint64_t mask = 0;
    if constexpr (kMaskSource == 2) mask = wave.pair(in.src[2]);
    if constexpr (kMaskSource == 3) mask = wave.vcc();
    uint32_t* const lo = kCompare ? nullptr : vgpr(wave, in.dst);
    uint32_t* const hi = lo + (kTwo ? kLanes : 0);
    uint64_t out;
    if (kCompare || exec == ~uint64_t{0}) [[likely]] {
      out = loop<true>(fetch, mask, exec, lo, hi);
    } else {
      out = loop<false>(fetch, mask, exec, lo, hi);
    }
    if constexpr (kCompare) wave.set_pair(in.dst, out & exec);
    if constexpr (kCarry) wave.set_pair(in.sdst, out & exec);
  }

  // Float operands of any kind with abs and neg, and clamp of a float result.
  static const Op* modified(const Op& op, Wave& wave) { return modified(op, wave, Indices{}); }
  template <size_t... I>
  static const Op* modified(const Op& op, Wave& wave, std::index_sequence<I...>) {
    if constexpr (kModeMask != 0) {
      if ((wave.mode & kModeMask) != kModeUsual) [[unlikely]]
        return general(op, wave);
    }
    const Instruction& in = op.in;
    Vgpr room[3][2];
    const std::tuple sources{
        modified_source<S>(wave, in, index<I>(), room[index<I>() < 3 ? index<I>() : 0])...};
    const auto fetch = [sources](size_t lane, uint64_t mask) HWY_ATTR {
      return F{}(operand<S>(std::get<I>(sources).image(lane), mask, lane)...);
    };
    finish(op, wave, fetch);
    return next(op);
  }
  template <class Tag>
  static HWY_INLINE auto modified_source(const Wave& wave, const Instruction& in, unsigned i,
                                         Vgpr (&room)[2]) {
    const bool applies = is_float(Tag::kType);
    const uint32_t sign = Tag::kType == Type::f16 ? 0x8000u : 0x80000000u;
    const D32<kWide> d;
    const Registers from = registers_of(wave, in, i, Tag::kType, room);
    return Modified<Tag>{from.half[0], from.half[1],
                         hn::Set(d, (in.abs >> i & 1) && applies ? ~sign : ~0u),
                         hn::Set(d, (in.neg >> i & 1) && applies ? sign : 0u)};
  }
  template <class Tag>
  struct Modified {
    HWY_INLINE Image<kWide> image(size_t lane) const {
      const D32<kWide> d;
      const auto modify = [&](auto v) HWY_ATTR { return hn::Xor(hn::And(v, keep), flip); };
      const auto v = hn::Load(d, lo + lane);
      if constexpr (is_wide(Tag::kType)) {
        return {v, modify(hn::Load(d, hi + lane))};
      } else {
        return {modify(v), v};
      }
    }
    const uint32_t* lo;
    const uint32_t* hi;
    V32<kWide> keep, flip;
  };

  static constexpr unsigned kForms = 1u << kSources;
  template <size_t... Scalars>
  static constexpr std::array<Handler, kForms> fast_handlers(std::index_sequence<Scalars...>) {
    if constexpr (kEachCombination) {
      return {&fast<Scalars>...};
    } else {
      return {(static_cast<void>(Scalars), Handler{&any})...};
    }
  }
  struct Forms {
    static constexpr std::array<Handler, kForms> kHandlers =
        fast_handlers(std::make_index_sequence<kForms>{});
  };
  static constexpr bool kHasFloat = (is_float(S::kType) || ...);

  static constexpr Entry entry(Opcode opcode) {
    Entry e;
    e.opcode = opcode;
    e.core = &core;
    if constexpr (!(kFlags & (kCold | kKeepsHigh))) {
      e.fast = Forms::kHandlers.data();
      if constexpr (kHasFloat && kSources >= 2 && !kHasMask) e.modified = &modified;
    }
    e.sources = kSources;
    e.mask_source = kMaskSource;
    constexpr Type kTypes[] = {S::kType...};
    unsigned n = 0;
    for (const Type type : kTypes) {
      if (type != Type::bit && type != Type::none) e.source[n++] = type;
    }
    e.result = R::kType;
    e.carry_out = kCarry;
    e.flags = kFlags;
    return e;
  }
};

// Defines one line of a family's table.
template <class Signature, unsigned kFlags = 0, class F>
constexpr Entry op(Opcode opcode, F) {
  return Instr<Signature, kFlags, F>::entry(opcode);
}

// The same with a second function that saturates, for the clamp bit of integer instructions.
template <class Signature, unsigned kFlags = 0, class F, class G>
constexpr Entry op(Opcode opcode, F, G) {
  Entry e = Instr<Signature, kFlags, F>::entry(opcode);
  e.saturating = &Instr<Signature, kFlags, G>::core;
  return e;
}

}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
