// The explicit arguments of kernels: their C++ types, and Arguments for types known only at run
// time.
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
// Thread safety: pure functions and values.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
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

namespace detail {

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

// An array, vector or span of T.
template <class Range, class T>
concept ContiguousOf = requires(const Range& range) {
  { std::data(range) } -> std::convertible_to<const T*>;
  { std::size(range) } -> std::convertible_to<size_t>;
};

template <class T>
concept PointerToPointers = std::is_pointer_v<T> && std::convertible_to<T, const void* const*>;

}  // namespace detail

// Properties of a C++ type that the layout check uses.
struct ArgumentType {
  enum class Kind : uint8_t { value, address, local };
  Kind kind;
  uint32_t size;                  // bytes in the kernarg block
  detail::ElementType element{};  // of a value, or of the elements behind an address
  std::string_view name{};        // "const float*"
  uint32_t alignment = 0;         // bytes; 0: unknown
};

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

// Arguments: the explicit arguments of one dispatch whose types are known only at run time, as a
// JIT compiler or the runtime of a language has them.
//
//   Kernel<Arguments> axpy = program.kernel<Arguments>("axpy");
//   struct { float* y; const float* x; float a; uint32_t n; } packed{y, x, 2.0f, n};
//   const Grid grid = Grid::blocks((n + 255) / 256).threads(256);
//   batch.dispatch(axpy, grid, std::as_bytes(std::span(&packed, 1)));
//   void* params[] = {&y, &x, &a, &n};
//   batch.dispatch(axpy, grid, params);
//
// A Kernel<Arguments> goes wherever a Kernel<Args...> does. Each of its dispatches takes one
// Arguments, which converts from either form:
//
// * Packed bytes: the explicit arguments at the offsets of the kernel's metadata, from offset 0.
//   These are the offsets of a C struct with the parameters as members, and the buffer that HIP
//   takes as HIP_LAUNCH_PARAM_BUFFER_POINTER and CUDA as CU_LAUNCH_PARAM_BUFFER_POINTER. The size
//   is that of the arguments, with or without the struct's padding at the end.
// * Pointers: the i-th points to the value of the i-th explicit argument, as in the kernelParams of
//   hipModuleLaunchKernel and cuLaunchKernel.
//
// An argument that is an LDS array (OpenCL's `local T*`) is given as its size in bytes, a uint32_t.
//
// Errors: a dispatch throws Error, which names the kernel, if the packed bytes have another size
// than the arguments, if there are more or fewer pointers than arguments, if a pointer is null, or
// if LDS arrays do not fit. It then has changed nothing, except that dispatch_each() keeps the
// dispatches before the failed one. A `void**` without a length, as those interfaces take it, must
// have one element for each argument; the library cannot check that. Pass a span or an array where
// the number is known. Program::kernel(name, types) also checks sizes, alignments and kinds of the
// arguments, once.
//
// A kernel without parameters takes std::span<const std::byte>().
//
// Lifetime: refers to the caller's bytes or pointers, as a span does. They are read during the
// dispatch and not afterwards.
class Arguments {
 public:
  // Packed bytes.
  template <detail::ContiguousOf<std::byte> Bytes>
  Arguments(const Bytes& packed) noexcept  // NOLINT: implicit, so that dispatches take the bytes
      : data_(std::data(packed)), count_(saturated(std::size(packed))) {}
  // Pointers.
  template <detail::ContiguousOf<const void*> Params>
  Arguments(const Params& params) noexcept  // NOLINT: implicit
      : data_(pointer(std::data(params))),
        count_(saturated(std::size(params))),
        is_packed_(false) {}
  // Pointers, as many as the kernel has arguments.
  template <detail::PointerToPointers Params>
  Arguments(const Params& params) noexcept  // NOLINT: implicit
      : data_(pointer(params)), count_(kUnknownCount), is_packed_(false) {}

  bool is_packed() const noexcept { return is_packed_; }
  // Requires is_packed().
  std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(data_), count_};
  }
  // Requires !is_packed(). Null only if the kernel takes no arguments.
  const void* const* pointers() const noexcept { return static_cast<const void* const*>(data_); }
  // The number of bytes, or of pointers.
  uint32_t count() const noexcept { return count_; }
  // False for pointers without a length.
  bool has_count() const noexcept { return count_ != kUnknownCount; }

 private:
  static const void* pointer(const void* const* params) noexcept { return params; }
  static constexpr uint32_t kUnknownCount = UINT32_MAX;
  // No kernel takes as many bytes or arguments.
  static constexpr uint32_t saturated(size_t count) noexcept {
    return static_cast<uint32_t>(std::min<size_t>(count, kUnknownCount - 1));
  }

  // Two registers, so that a call takes a copy.
  const void* data_ = nullptr;
  uint32_t count_ = 0;  // of bytes or of pointers
  bool is_packed_ = true;
};

}  // namespace uptempo
