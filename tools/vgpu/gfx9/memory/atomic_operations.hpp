// Atomic operations as functions of the old value and the operands. Value is the type in memory.
// operands() registers of that size are read from the data operands.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace uptempo::vgpu::gfx9::memory {

// Half-precision sum. Rounding to float's 24 bits first does not change the result: 24 is at least
// 2 * 11 + 2, with the half's 11 bits.
uint16_t add_halves(uint16_t a, uint16_t b) noexcept;
// The same of bfloat16, which has 8 bits.
uint16_t add_bfloats(uint16_t a, uint16_t b) noexcept;

namespace atomic {

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <class T, T (*Function)(T old, T data)>
struct Binary {
  using Value = Bits<T>;
  static Value apply(Value old, Value data, Value) noexcept {
    return std::bit_cast<Value>(Function(std::bit_cast<T>(old), std::bit_cast<T>(data)));
  }
};

template <class T>
T add(T a, T b) {
  return static_cast<T>(a + b);
}
template <class T>
T subtract(T a, T b) {
  return static_cast<T>(a - b);
}
template <class T>
T reverse_subtract(T a, T b) {
  return static_cast<T>(b - a);
}
template <class T>
T minimum(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T maximum(T a, T b) {
  return b > a ? b : a;
}
template <class T>
T bit_and(T a, T b) {
  return a & b;
}
template <class T>
T bit_or(T a, T b) {
  return a | b;
}
template <class T>
T bit_xor(T a, T b) {
  return a ^ b;
}
template <class T>
T exchange(T, T b) {
  return b;
}
template <class T>
T increment(T a, T b) {
  return a >= b ? 0 : a + 1;
}
template <class T>
T decrement(T a, T b) {
  return a == 0 || a > b ? b : a - 1;
}

// Minimum and maximum of floats as the instruction set manuals define them for LDS and L2: CDNA2
// ISA 9.5.3, CDNA3 and CDNA4 ISA 9.2.3, "NaN Handling". A signalling NaN gives its quiet form. A
// quiet NaN loses against any number. -0 is below +0. The manuals do not say whether memory or the
// data is "src0"; here memory is, which matters for two NaNs only.
//
// Denormals are never flushed. L2 does not flush them either; LDS flushes them for the comparison
// if MODE says so (table "Denorm Handling Rules for Memory Ops").
template <class T, bool Larger>
struct SelectFloat {
  using Value = Bits<T>;
  static Value apply(Value old, Value data, Value) noexcept {
    if (is_signalling(old)) return old | kQuiet;
    if (is_signalling(data)) return data | kQuiet;
    if (is_nan(old)) return data;
    if (is_nan(data)) return old;
    return (Larger ? order(data) > order(old) : order(data) < order(old)) ? data : old;
  }

 private:
  using Order = std::make_signed_t<Value>;
  static constexpr Value kMagnitude = static_cast<Value>(std::numeric_limits<Order>::max());
  static constexpr Value kInfinity = std::bit_cast<Value>(std::numeric_limits<T>::infinity());
  static constexpr Value kQuiet = Value{1} << (std::numeric_limits<T>::digits - 2);

  static constexpr bool is_nan(Value bits) noexcept { return (bits & kMagnitude) > kInfinity; }
  static constexpr bool is_signalling(Value bits) noexcept {
    return is_nan(bits) && (bits & kQuiet) == 0;
  }
  // An integer that orders like the number.
  static constexpr Order order(Value bits) noexcept {
    return static_cast<Order>((bits & ~kMagnitude) == 0 ? bits : bits ^ kMagnitude);
  }
};

template <class T>
using Add = Binary<T, add<T>>;
template <class T>
using Subtract = Binary<T, subtract<T>>;
template <class T>
using ReverseSubtract = Binary<T, reverse_subtract<T>>;
template <class T>
using Minimum =
    std::conditional_t<std::is_floating_point_v<T>, SelectFloat<T, false>, Binary<T, minimum<T>>>;
template <class T>
using Maximum =
    std::conditional_t<std::is_floating_point_v<T>, SelectFloat<T, true>, Binary<T, maximum<T>>>;
template <class T>
using And = Binary<T, bit_and<T>>;
template <class T>
using Or = Binary<T, bit_or<T>>;
template <class T>
using Xor = Binary<T, bit_xor<T>>;
template <class T>
using Exchange = Binary<T, exchange<T>>;
template <class T>
using Increment = Binary<T, increment<T>>;
template <class T>
using Decrement = Binary<T, decrement<T>>;

template <uint16_t (*Add)(uint16_t, uint16_t) noexcept>
struct AddPacked {
  using Value = uint32_t;
  static Value apply(Value old, Value data, Value) noexcept {
    const auto low = Add(static_cast<uint16_t>(old), static_cast<uint16_t>(data));
    const auto high = Add(static_cast<uint16_t>(old >> 16), static_cast<uint16_t>(data >> 16));
    return low | uint32_t{high} << 16;
  }
};
using AddPackedHalves = AddPacked<add_halves>;
using AddPackedBfloats = AddPacked<add_bfloats>;

// DS compares with the first operand and stores the second. FLAT and MUBUF have the opposite order.
template <class T>
struct CompareFirst {
  using Value = Bits<T>;
  static Value apply(Value old, Value compare, Value store) noexcept {
    return std::bit_cast<T>(old) == std::bit_cast<T>(compare) ? store : old;
  }
};
template <class T>
struct CompareSecond {
  using Value = Bits<T>;
  static Value apply(Value old, Value store, Value compare) noexcept {
    return old == compare ? store : old;
  }
};

template <class T>
struct MaskedOr {
  using Value = T;
  static T apply(T old, T mask, T data) noexcept { return (old & ~mask) | data; }
};
struct Wrap {
  using Value = uint32_t;
  static Value apply(Value old, Value a, Value b) noexcept { return old >= a ? old - a : old + b; }
};
// Replaces each dword, without its top bit, where the top bit of its operand is set.
struct ConditionalExchange {
  using Value = uint64_t;
  static Value apply(Value old, Value data, Value) noexcept {
    const auto half = [](uint32_t before, uint32_t value) {
      return (value >> 31) != 0 ? value & 0x7fffffff : before;
    };
    return half(static_cast<uint32_t>(old), static_cast<uint32_t>(data)) |
           Value{half(static_cast<uint32_t>(old >> 32), static_cast<uint32_t>(data >> 32))} << 32;
  }
};

}  // namespace atomic
}  // namespace uptempo::vgpu::gfx9::memory
