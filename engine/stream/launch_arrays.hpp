// Host arrays as launch arguments: Launcher::launch() copies them to its own device memory and
// back.
//
//   Launcher<float*, const float*, uint32_t> step{streams, kernel};
//   step.launch(stream, Grid{n}.by(64), out(y), in(x), n);      // x and y: std::vector<float>
//
// launch() reads in() arrays before it returns; out() and in_out() arrays hold their results when
// it returns. Any pageable memory works. launcher.hpp has the details.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/memory/buffer.hpp"
#include "engine/stream/queue/detail/launch_reservation.hpp"
#include "engine/stream/stream.hpp"

namespace uptempo {

namespace detail {

enum class ArrayWay : uint8_t { in, out, in_out };

template <class T, ArrayWay W>
struct HostArray {
  using value_type = std::remove_const_t<T>;
  static constexpr bool kGoesIn = W != ArrayWay::out;
  static constexpr bool kComesOut = W != ArrayWay::in;
  std::span<T> memory;
};

template <class T>
inline constexpr bool is_host_array = false;
template <class T, ArrayWay W>
inline constexpr bool is_host_array<HostArray<T, W>> = true;

// True if a kernel parameter accepts the argument: a value, or, for a pointer, an array of its
// element type.
template <class Given, class Parameter>
constexpr bool can_be_given() {
  if constexpr (is_host_array<Given>) {
    return std::is_pointer_v<Parameter> &&
           std::is_same_v<typename Given::value_type,
                          std::remove_cv_t<std::remove_pointer_t<Parameter>>>;
  } else {
    return std::is_convertible_v<const Given&, Parameter>;
  }
}

}  // namespace detail

// An array that the kernel reads: any contiguous range (a vector, an array, a span).
template <std::ranges::contiguous_range R>
auto in(const R& range) {
  const std::span memory(range);
  using T = std::remove_const_t<typename decltype(memory)::element_type>;
  return detail::HostArray<const T, detail::ArrayWay::in>{memory};
}
// An array that the kernel fills. Elements that the kernel does not write are undefined.
template <std::ranges::contiguous_range R>
auto out(R&& range) {
  const std::span memory(range);
  return detail::HostArray<typename decltype(memory)::element_type, detail::ArrayWay::out>{memory};
}
// An array that the kernel reads and writes.
template <std::ranges::contiguous_range R>
auto in_out(R&& range) {
  const std::span memory(range);
  return detail::HostArray<typename decltype(memory)::element_type, detail::ArrayWay::in_out>{
      memory};
}

namespace detail {

// A launcher's device memory for array arguments, one buffer per argument. Allocated on first use
// and enlarged as needed. Private to engine/stream.
class LaunchScratch {
 public:
  // `arguments`: number of arguments.
  explicit LaunchScratch(size_t arguments) noexcept : arguments_(arguments) {}

  // Returns memory for an argument. A buffer that is too small is freed in stream order.
  std::byte* room(Stream& stream, const Agent& gpu, size_t argument, size_t bytes);
  void copy_in(Stream& stream, size_t argument, std::span<const std::byte> host);
  void copy_out(Stream& stream, size_t argument, std::span<std::byte> host);

  // Transfers ownership of all memory to the caller. Call if a launch that uses it may be
  // unfinished.
  std::vector<DeviceBuffer<std::byte>> take_memory() noexcept {
    return std::exchange(buffers_, {});
  }
  bool empty() const noexcept { return buffers_.empty(); }

  // Number of the last stream that used the memory, and its last work then. No queue: nothing is
  // unfinished.
  uint64_t stream = 0;
  LastWork last_work;

 private:
  const size_t arguments_;
  std::vector<DeviceBuffer<std::byte>> buffers_;
};

}  // namespace detail
}  // namespace uptempo
