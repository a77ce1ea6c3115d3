// ArgumentType: the C++ types of kernel arguments, and whether they match what a code object
// declares.
//
// A type is compared with `.value_kind`, `.size` and `.type_name` of the metadata (LLVM AMDGPU User
// Guide, "Code Object V3 Kernel Argument Metadata"). clang writes type names for OpenCL C but not
// for HIP, where only kind and size are compared.
//
// Rules for arguments with a type name:
// * A scalar must match in class (boolean, integer, floating) and size. Signedness is not compared:
//   the kernel receives the caller's bits and reads them with its own sign. Enumerations are
//   integers.
// * A vector (float4) is passed as std::array of its elements, or as a class of its size. float3
//   has the size of float4 (OpenCL C specification, "Alignment of Types").
// * A class of the declared size matches every type. Every type of that size matches a type name
//   that OpenCL C does not define: structs and typedefs are compared by size alone.
// * A pointer is compared by its elements: float* matches float* and float4*; int* matches neither.
//   Pointers to void, std::byte, uint8_t and classes match every pointer. uint16_t* matches half*,
//   because it is OpenCL's cl_half.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace uptempo {

// A dynamically sized LDS array: the kernel's `local T*` parameter, with its size in this dispatch.
struct LocalBytes {
  // The alignment of each array (grid.hpp): the largest that OpenCL C requires for LDS accesses.
  static constexpr uint32_t kAlignment = 16;

  uint32_t size_bytes = 0;
};

// Returns the offset of a LocalBytes array that begins at `offset` or after it.
constexpr uint64_t align_local(uint64_t offset) noexcept {
  return (offset + LocalBytes::kAlignment - 1) / LocalBytes::kAlignment * LocalBytes::kAlignment;
}

// Type of a value, or of the elements behind an address, as far as known.
struct ElementType {
  enum class Scalar : uint8_t {
    unknown,    // classes, and names that OpenCL C does not define
    bytes,      // untyped memory: void, std::byte, uint8_t
    half_bits,  // uint16_t in memory: integers, or cl_half
    boolean,
    integer,
    floating,
  };
  Scalar scalar = Scalar::unknown;
  uint32_t size_bytes = 0;  // of one element; 0 if the scalar is unknown

  friend constexpr bool operator==(const ElementType&, const ElementType&) = default;
};

// Properties of a C++ type that the layout check uses.
struct ArgumentType {
  enum class Kind : uint8_t { value, address, local };
  Kind kind;
  uint32_t size;            // bytes in the kernarg block
  ElementType element{};    // of a value, or of the elements behind an address
  std::string_view name{};  // "const float*"
  uint32_t alignment = 0;   // bytes; 0: unknown
};

namespace detail {

template <class T>
inline constexpr bool is_std_array = false;
template <class T, size_t N>
inline constexpr bool is_std_array<std::array<T, N>> = true;

template <class T>
constexpr ElementType element_of() noexcept {
  using Scalar = ElementType::Scalar;
  using U = std::remove_cv_t<std::remove_all_extents_t<T>>;
  static_assert(!std::is_same_v<U, long double>,
                "long double has another size on the device; pass double");
  if constexpr (is_std_array<U>) {
    return element_of<typename U::value_type>();
  } else if constexpr (std::is_same_v<U, bool>) {
    return {Scalar::boolean, 1};
  } else if constexpr (std::is_integral_v<U> || std::is_enum_v<U>) {
    return {Scalar::integer, sizeof(U)};
  } else if constexpr (std::is_floating_point_v<U>) {
    return {Scalar::floating, sizeof(U)};
#ifdef __FLT16_MANT_DIG__
    // the standard library knows it as floating-point only since C++23
  } else if constexpr (std::is_same_v<U, _Float16>) {
    return {Scalar::floating, sizeof(U)};
#endif
  } else {
    return {};
  }
}

template <class T>
constexpr ElementType pointee_of() noexcept {
  using Scalar = ElementType::Scalar;
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_void_v<U> || std::is_same_v<U, std::byte> || std::is_same_v<U, uint8_t>) {
    return {Scalar::bytes, 1};
  } else if constexpr (std::is_same_v<U, uint16_t>) {
    return {Scalar::half_bits, 2};
  } else if constexpr (std::is_pointer_v<U>) {
    return {Scalar::integer, sizeof(U)};  // memory that holds addresses
  } else {
    return element_of<U>();
  }
}

// The compiler's spelling of the type: "const float*".
template <class T>
constexpr std::string_view name_of_type() noexcept {
  // GCC: "... [with T = const float*; std::string_view = ...]". clang: "... [T = const float *]".
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("T = ") + 4);
  size_t end = text.find(';');
  if (end == std::string_view::npos) end = text.rfind(']');
  return text.substr(0, end);
}

}  // namespace detail

template <class T>
constexpr ArgumentType argument_type() noexcept {
  static_assert(!std::is_reference_v<T>,
                "kernel arguments are values and addresses; pass a pointer");
  static_assert(std::is_trivially_copyable_v<T>, "kernel arguments are copied byte for byte");
  if constexpr (std::is_same_v<std::remove_cv_t<T>, LocalBytes>) {
    return {.kind = ArgumentType::Kind::local, .size = sizeof(uint32_t), .name = "LocalBytes"};
  } else if constexpr (std::is_pointer_v<T>) {
    return {.kind = ArgumentType::Kind::address,
            .size = sizeof(T),
            .element = detail::pointee_of<std::remove_pointer_t<T>>(),
            .name = detail::name_of_type<T>(),
            .alignment = alignof(T)};
  } else {
    return {.kind = ArgumentType::Kind::value,
            .size = sizeof(T),
            .element = detail::element_of<T>(),
            .name = detail::name_of_type<T>(),
            .alignment = alignof(T)};
  }
}

// Returns the element type that a metadata type name declares: float for "float4*", unknown for "S"
// or no name.
ElementType declared_element(std::string_view type_name) noexcept;

// True if a kernel can read elements of type `given` as `declared`.
bool fits(const ArgumentType& given, const ElementType& declared) noexcept;

}  // namespace uptempo
