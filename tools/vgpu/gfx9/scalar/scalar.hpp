// Shared parts of the scalar instructions: operands, and handlers made from plain functions.
//
// An operation is a captureless lambda. Its parameter types select its arguments: uint32_t,
// int32_t, uint64_t, int64_t are the sources in order, Old<T> the destination's present value, Imm
// the 16-bit immediate, bool& SCC, Wave& the wave. A result goes to dst.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "gfx9/op.hpp"

namespace uptempo::vgpu::gfx9::scalar {

// Preparation that sources need before they can be read from Wave::scalar. A template parameter, so
// that plain registers cost nothing.
enum class Staging : uint8_t { none, literal, status };
inline constexpr unsigned kStagings = 3;

// constant64() of the source codes 128..255.
extern const std::array<uint64_t, 128> kConstants64;

template <class T>
struct Old {
  T value;
};
struct Imm {
  uint32_t value;  // sign-extended where the instruction is signed
};

template <Staging S>
inline void stage(const Op& op, Wave& wave) noexcept {
  if constexpr (S != Staging::none) wave.scalar[kLiteral] = op.in.literal;
  if constexpr (S == Staging::status) {
    wave.scalar[kVccz] = wave.vcc() == 0;
    wave.scalar[kExecz] = wave.exec() == 0;
    wave.scalar[kScc] = wave.scc;
  }
}

// A literal for a 64-bit operand is zero-extended, or sign-extended where the instruction is
// signed.
template <class T>
inline T operand(const Wave& wave, OperandCode code) noexcept {
  if constexpr (sizeof(T) == 4) {
    return static_cast<T>(wave.scalar[code]);
  } else {
    if (code < kFirstConstant) return static_cast<T>(wave.pair(code));
    if (code == kLiteral) {
      if constexpr (std::is_signed_v<T>) return static_cast<int32_t>(wave.scalar[code]);
      return wave.scalar[code];
    }
    if (code >= kVccz) return wave.scalar[code];
    return static_cast<T>(kConstants64[code - kFirstConstant]);
  }
}

template <class T>
struct Argument;  // obtains one parameter

template <class T>
requires std::is_integral_v<T>
struct Argument<T> {
  static constexpr bool kSource = true;
  static T get(const Op& op, Wave& wave, unsigned index) noexcept {
    return operand<T>(wave, op.in.src[index]);
  }
};
template <class T>
struct Argument<Old<T>> {
  static constexpr bool kSource = false;
  static Old<T> get(const Op& op, Wave& wave, unsigned) noexcept {
    return {operand<T>(wave, op.in.dst)};
  }
};
template <>
struct Argument<Imm> {
  static constexpr bool kSource = false;
  static Imm get(const Op& op, Wave&, unsigned) noexcept { return {op.in.literal}; }
};
template <>
struct Argument<bool&> {
  static constexpr bool kSource = false;
  static bool& get(const Op&, Wave& wave, unsigned) noexcept { return wave.scc; }
};
template <>
struct Argument<Wave&> {
  static constexpr bool kSource = false;
  static Wave& get(const Op&, Wave& wave, unsigned) noexcept { return wave; }
};

template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> {
  using Result = R;
  using Arguments = std::tuple<A...>;
  static constexpr size_t kCount = sizeof...(A);
};

template <class F, Staging S>
const Op* execute(const Op& op, Wave& wave) {
  using Form = Signature<F>;
  stage<S>(op, wave);
  const auto call = [&]<size_t... I>(std::index_sequence<I...>) {
    return F{}(Argument<std::tuple_element_t<I, typename Form::Arguments>>::get(op, wave, I)...);
  };
  if constexpr (std::is_void_v<typename Form::Result>) {
    call(std::make_index_sequence<Form::kCount>{});
  } else {
    const auto result = call(std::make_index_sequence<Form::kCount>{});
    if constexpr (sizeof result == 8) {
      wave.set_pair(op.in.dst, static_cast<uint64_t>(result));
    } else {
      wave.scalar[op.in.dst] = static_cast<uint32_t>(result);
    }
  }
  if constexpr (S == Staging::none) return next<1>(op);
  if constexpr (S == Staging::literal) return next<2>(op);
  return next(op);
}

struct Entry {
  Opcode opcode;
  std::array<Handler, kStagings> handler;
  bool wide_result;  // writes two registers
};

template <class F>
constexpr Entry entry(Opcode opcode, F) {
  using Result = typename Signature<F>::Result;
  constexpr bool kWide = [] {
    if constexpr (std::is_void_v<Result>)
      return false;
    else
      return sizeof(Result) == 8;
  }();
  return {opcode,
          {&execute<F, Staging::none>, &execute<F, Staging::literal>, &execute<F, Staging::status>},
          kWide};
}

// Families. Each returns nullptr for opcodes of other families.
Handler translate_alu(Instruction& in) noexcept;
Handler translate_control(Instruction& in, MemoryPolicy policy) noexcept;
Handler translate_indexing(Instruction& in) noexcept;
Handler translate_memory(Instruction& in, MemoryPolicy policy) noexcept;

}  // namespace uptempo::vgpu::gfx9::scalar
