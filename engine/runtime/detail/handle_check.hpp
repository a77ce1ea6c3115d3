// Handle checks: the compile-time switch, and the tags that the checks compare. Private:
// CommandRef and the templates of BatchSubmitter need it.
//
// Handle checks find uses of a handle after the library has recycled its object: a CommandRef after
// its batch was submitted; a pooled signal or slab that is returned twice.
//
// The CMake option UPTEMPO_CHECK_HANDLES turns them on. It is ON by default for the build type
// Debug and OFF otherwise. The checks add members to public classes, so the library and its users
// must agree: the target uptempo::engine exports the definition, and BatchSubmitter's constructor
// takes a HandleChecks, so that a mismatch fails to link. When off, the checks leave nothing in
// objects or code.
//
// Errors: misuse by the program throws Error. Misuse within the library writes a sentence to stderr
// and aborts.
#pragma once

#include <cstdint>
#include <type_traits>

namespace uptempo::detail {

#if defined(UPTEMPO_CHECK_HANDLES)
inline constexpr bool kHandleChecks = true;
#else
inline constexpr bool kHandleChecks = false;
#endif

template <bool on>
struct HandleChecks {};

// Reuse generation of a recycled object.
struct Generation {
  uint32_t number = 0;
  void next() noexcept { ++number; }
  friend bool operator==(const Generation&, const Generation&) = default;
};
struct NoGeneration {
  void next() noexcept {}
  friend bool operator==(const NoGeneration&, const NoGeneration&) = default;
};
using GenerationTag = std::conditional_t<kHandleChecks, Generation, NoGeneration>;
static_assert(std::is_empty_v<NoGeneration>);

// Writes "uptempo: <sentence>" to stderr and aborts.
[[noreturn]] void end_with(const char* sentence) noexcept;

}  // namespace uptempo::detail
