// Cores of rarely executed instructions, as a function on one lane's scalars. Cost: about 1 to 5 ns
// per lane.
#pragma once

#include <bit>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "gfx9/vector/entry.hpp"
#include "gfx9/vector/half.hpp"

namespace uptempo::vgpu::gfx9::vector {

template <Type kType>
auto lane_value(const uint32_t* const (&src)[2], unsigned lane) {
  const uint32_t lo = src[0][lane];
  if constexpr (kType == Type::i32) {
    return static_cast<int32_t>(lo);
  } else if constexpr (kType == Type::f32) {
    return std::bit_cast<float>(lo);
  } else if constexpr (kType == Type::f16) {
    return half_value(lo & 0xffffu);
  } else if constexpr (is_wide(kType)) {
    const uint64_t bits = lo | static_cast<uint64_t>(src[1][lane]) << 32;
    if constexpr (kType == Type::f64) {
      return std::bit_cast<double>(bits);
    } else {
      return bits;
    }
  } else {
    return lo;
  }
}

inline uint64_t lane_bits(uint32_t v) { return v; }
inline uint64_t lane_bits(int32_t v) { return static_cast<uint32_t>(v); }
inline uint64_t lane_bits(float v) { return std::bit_cast<uint32_t>(v); }
inline uint64_t lane_bits(double v) { return std::bit_cast<uint64_t>(v); }
inline uint64_t lane_bits(uint64_t v) { return v; }

template <class Signature, class F>
struct ScalarInstr;

template <class R, class... S, class F>
struct ScalarInstr<R(S...), F> {
  static_assert(
      std::is_empty_v<F>,
      "pass a function object, not a pointer: the core default-constructs it from its type");
  static void core(Lanes& lanes) { core(lanes, std::index_sequence_for<S...>{}); }
  template <size_t... I>
  static void core(Lanes& lanes, std::index_sequence<I...>) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const uint64_t bits = lane_bits(F{}(lane_value<S::kType>(lanes.src[I], lane)...));
      lanes.dst[0][lane] = static_cast<uint32_t>(bits);
      if constexpr (is_wide(R::kType)) lanes.dst[1][lane] = static_cast<uint32_t>(bits >> 32);
    }
  }
};

// Defines one line of a family's table. The signature names types as in op<>() of
// instruction-inl.hpp. I64 values are uint64.
template <class Signature, class F>
constexpr Core scalar_core(F) {
  return &ScalarInstr<Signature, F>::core;
}
template <class R, class... S>
constexpr Entry scalar_entry(Opcode opcode, R (*)(S...), Core core, Core saturating) {
  Entry e;
  e.opcode = opcode;
  e.core = core;
  e.saturating = saturating;
  e.sources = sizeof...(S);
  unsigned n = 0;
  for (const Type type : {S::kType...}) e.source[n++] = type;
  e.result = R::kType;
  return e;
}
template <class Signature, class F>
constexpr Entry scalar_op(Opcode opcode, F f) {
  return scalar_entry(opcode, static_cast<Signature*>(nullptr), scalar_core<Signature>(f), nullptr);
}
template <class Signature, class F, class G>
constexpr Entry scalar_op(Opcode opcode, F f, G saturating) {
  return scalar_entry(opcode, static_cast<Signature*>(nullptr), scalar_core<Signature>(f),
                      scalar_core<Signature>(saturating));
}

}  // namespace uptempo::vgpu::gfx9::vector
