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
// dispatch and not afterwards. Thread safety: a value.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <type_traits>

namespace uptempo {

namespace detail {

// An array, vector or span of T.
template <class Range, class T>
concept ContiguousOf = requires(const Range& range) {
  { std::data(range) } -> std::convertible_to<const T*>;
  { std::size(range) } -> std::convertible_to<size_t>;
};

template <class T>
concept PointerToPointers = std::is_pointer_v<T> && std::convertible_to<T, const void* const*>;

}  // namespace detail

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
