// Moves of 8 and 16 bytes that other threads see whole.
//
// Hardware performs a lane's aligned load or store of 8 or 16 bytes as one access, and programs
// rely on it: rocPRIM keeps a flag and its value in one word of 16 bytes and reads it without a
// lock. Each function here is one access of the host, if the address is a multiple of the size. A
// memcpy() of an array is not, because compilers may split it; volatile accesses are not split.
//
// On processors with AVX, an aligned vector access of 16 bytes is one access (Intel SDM, volume 3A,
// 9.1.1; AMD64 APM, volume 2, 7.3.2). The manuals name the instructions that require alignment. At
// an aligned address the others are the same operation, and wider vectors are split at multiples of
// 16 bytes or not at all; test/vgpu/gfx9/whole_access_test.cpp looks for torn values. Without AVX,
// a locked CMPXCHG16B takes the place of both, so that loads need memory that the host may write.
//
// All are inlined: sources with and without ThreadSanitizer share them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace uptempo::vgpu {

// Four dwords as one value.
using Quad = uint32_t __attribute__((vector_size(16)));

// Whether vector accesses of aligned 16 bytes are whole on this processor.
inline const bool kVectorsAreWhole = [] {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx") != 0;
}();

namespace whole {

typedef uint64_t Unaligned8 __attribute__((aligned(1), may_alias));
typedef uint32_t Unaligned16 __attribute__((vector_size(16), aligned(1), may_alias));

struct Halves {
  uint64_t low, high;
};
[[gnu::always_inline]] inline Halves halves_of(const void* at) noexcept {
  return {static_cast<const volatile Unaligned8*>(at)[0],
          static_cast<const volatile Unaligned8*>(at)[1]};
}

// If the 16 bytes at `at` equal `expected`, replaces them by `desired`. Otherwise sets `expected`
// to them. `at` is aligned.
[[gnu::always_inline]] inline bool compare_exchange(void* at, Halves& expected,
                                                    Halves desired) noexcept {
  bool equal;
  asm volatile("lock cmpxchg16b %1"
               : "=@ccz"(equal), "+m"(*static_cast<Unaligned16*>(at)), "+a"(expected.low),
                 "+d"(expected.high)
               : "b"(desired.low), "c"(desired.high)
               : "memory");
  return equal;
}

// For processors without AVX.
[[gnu::always_inline]] inline Quad load_locked(const void* at) noexcept {
  Halves value{0, 0};
  if (reinterpret_cast<uintptr_t>(at) % 16 == 0)
    compare_exchange(const_cast<void*>(at), value, value);
  else
    value = halves_of(at);
  Quad result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}
[[gnu::always_inline]] inline void store_locked(void* at, Quad value) noexcept {
  const Halves desired = halves_of(&value);
  if (reinterpret_cast<uintptr_t>(at) % 16 == 0) {
    Halves expected = halves_of(at);
    while (!compare_exchange(at, expected, desired)) {
    }
  } else {
    auto* const half = static_cast<volatile Unaligned8*>(at);
    half[0] = desired.low;
    half[1] = desired.high;
  }
}

}  // namespace whole

template <class T>
[[gnu::always_inline]] inline T load_whole(const void* at) noexcept {
  if constexpr (sizeof(T) == 8) {
    return *static_cast<const volatile whole::Unaligned8*>(at);
  } else if constexpr (sizeof(T) == 16) {
    return kVectorsAreWhole ? Quad(*static_cast<const volatile whole::Unaligned16*>(at))
                            : whole::load_locked(at);
  } else {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
}

template <class T>
[[gnu::always_inline]] inline void store_whole(void* at, const T& value) noexcept {
  if constexpr (sizeof(T) == 8) {
    *static_cast<volatile whole::Unaligned8*>(at) = value;
  } else if constexpr (sizeof(T) == 16) {
    if (kVectorsAreWhole)
      *static_cast<volatile whole::Unaligned16*>(at) = value;
    else
      whole::store_locked(at, value);
  } else {
    std::memcpy(at, &value, sizeof value);
  }
}

// Copies 1, 2, 4, 8 or 16 bytes by one load and one store.
template <size_t Bytes>
[[gnu::always_inline]] inline void copy_whole(void* to, const void* from) noexcept {
  if constexpr (Bytes == 8)
    store_whole(to, load_whole<uint64_t>(from));
  else if constexpr (Bytes == 16)
    store_whole(to, load_whole<Quad>(from));
  else
    std::memcpy(to, from, Bytes);
}

// Copies any number of bytes in the largest pieces that are whole.
[[gnu::always_inline]] inline void copy_in_pieces(std::byte* to, const std::byte* from,
                                                  size_t size_bytes) noexcept {
  size_t at = 0;
  const auto copy = [&]<size_t Piece>() {
    for (; at + Piece <= size_bytes; at += Piece) copy_whole<Piece>(to + at, from + at);
  };
  copy.template operator()<16>();
  copy.template operator()<8>();
  copy.template operator()<4>();
  copy.template operator()<2>();
  copy.template operator()<1>();
}

}  // namespace uptempo::vgpu
