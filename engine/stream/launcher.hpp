// Launcher: a handle for one kernel that is launched repeatedly, mostly with the same arguments.
//
//   using Step = Launcher<float*, const float*, float, uint32_t>;
//   Step step{streams, program.kernel<float*, const float*, float, uint32_t>("step")};
//   for (uint32_t i = 0; i < steps; ++i) step.launch(stream, Grid{n}.by(256), y, x, dt, n);
//
// Kept arguments: the handle owns a few kernarg blocks. A launch whose argument bytes equal those
// of a block writes nothing; its packet refers to that block. Other arguments go into a block that
// no unfinished launch reads, otherwise into the queue's kernarg memory, as with Stream::launch().
// No block changes while a launch on any stream reads it. Hidden arguments take part in the
// comparison, so another grid or queue uses a block only if they are equal. Constant arguments and
// alternating sets of them cost one comparison each (argument_blocks.hpp).
//
// Cost: comparing costs less than writing from 512 bytes on, or if the queue's arguments are in
// device memory (tools/bench/stream). Only there does a handle keep arguments, unless it is told
// otherwise. For arguments that change with every launch, keeping adds a comparison and a second
// copy. Without blocks, the handle works like Stream::launch(). The counters argument_hits,
// argument_misses and argument_bytes_saved (counters.hpp) count the effect.
//
// Host arrays: where the kernel takes a pointer, launch() also takes in(x), out(x) or in_out(x) of
// a vector or span.
//
//   step.launch(stream, Grid{n}.by(64), out(y), in(x), n);      // x and y: std::vector<float>
//
// It copies the array to device memory of the handle, launches, and copies back, all in the order
// of the stream (Stream::copy(), through its staging memory). The host waits once, after the
// launch, and only if there is an out() or in_out() array. launch() reads in() arrays before it
// returns; out() and in_out() arrays hold their results when it returns. Any pageable memory works.
// A handle that was used on another stream orders the launch after that use.
//
// Memory: the first launch that needs scratch memory for arrays allocates it; later ones grow it on
// demand, and launches without arrays use none. The first launch allocates all blocks. In steady
// state a launch allocates and frees nothing and makes no signal. The destructor does not wait.
// Memory that launches may still read is freed after they have completed, as by
// Stream::free_after_work().
//
// Order, visibility, back-pressure and errors are those of Stream::launch(). Kernels must not write
// to their kernarg block (no compiler produces such a kernel): the next launch that shares the
// block would read the change.
//
// Thread safety: one thread at a time per handle, with any stream that this thread may use.
// Lifetime: the handle keeps the kernel's code loaded and the queues alive, so streams and Streams
// may be destroyed before it. As with Stream::launch(), the code must stay loaded until completion:
// keep the Program or a Kernel if the handle may be destroyed earlier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <uptempo/memory/buffer.hpp>
#include <uptempo/program/grid.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/stream/detail/argument_blocks.hpp>
#include <uptempo/stream/stream.hpp>
#include <uptempo/stream/streams.hpp>

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

template <ArrayWay W, class T, size_t N>
HostArray<T, W> host_array(std::span<T, N> memory) {
  return {memory};
}

}  // namespace detail

// An array that the kernel reads: any contiguous range (a vector, an array, a span).
template <std::ranges::contiguous_range R>
auto in(const R& range) {
  return detail::host_array<detail::ArrayWay::in>(
      std::span<const std::ranges::range_value_t<R>>(range));
}
// An array that the kernel fills. Elements that the kernel does not write are undefined.
template <std::ranges::contiguous_range R>
auto out(R&& range) {
  return detail::host_array<detail::ArrayWay::out>(std::span(range));
}
// An array that the kernel reads and writes.
template <std::ranges::contiguous_range R>
auto in_out(R&& range) {
  return detail::host_array<detail::ArrayWay::in_out>(std::span(range));
}

namespace detail {

struct Retired;
class KernargMemory;

// The part of a Launcher that does not depend on the argument types.
class LauncherCore {
 public:
  LauncherCore(Streams& streams, std::shared_ptr<const KernelInfo> kernel,
               std::optional<uint32_t> blocks);
  ~LauncherCore();
  LauncherCore(const LauncherCore&) = delete;
  LauncherCore& operator=(const LauncherCore&) = delete;

  // Throws Error for a stream of other Streams.
  void require(const Stream& stream) const {
    if (stream.streams_ != streams_) [[unlikely]]
      refuse_stream(stream);
  }
  bool keeps_blocks() const noexcept { return most_blocks_ != 0; }
  ArgumentBlocks& blocks() noexcept { return blocks_; }

  // Reserves a launch without a block. Throws Error, also for a stream of other Streams.
  LaunchReservation reserve(Stream& stream, const LaunchGrid& on) {
    require(stream);
    if (blocks_.empty()) [[unlikely]]
      make_blocks();  // not under the queue's lock: it may take long
    return stream.reserve(*kernel_, on, false);
  }
  static StreamQueue& queue_of(const Stream& stream) noexcept { return *stream.queue_; }
  // Takes a block of the queue after all. Returns false if none is free.
  static bool try_take_block(const Stream& stream, LaunchReservation& reserved) noexcept;
  static void launch(Stream& stream, LaunchReservation&& reserved, aql::Packet64& packet) noexcept {
    stream.commit(std::move(reserved), packet);
  }
  // The same for a dispatch that reads `block`. Throws std::bad_alloc.
  void launch(Stream& stream, LaunchReservation&& reserved, ArgumentBlock& block,
              uint32_t group_segment);

  // Scratch memory for array arguments: one allocation per argument, which grows on demand. Call
  // begin_arrays() before a use: it orders the stream after a use on another one.
  void begin_arrays(Stream& stream);
  // A buffer that is too small is freed in stream order.
  void* room(Stream& stream, size_t argument, size_t bytes);
  void copy_in(Stream& stream, size_t argument, std::span<const std::byte> host);
  void copy_out(Stream& stream, size_t argument, std::span<std::byte> host);
  // Records that the stream's last launch uses the scratch memory.
  void end_arrays(Stream& stream);
  // Call after an error. The scratch memory is freed after all that the stream has submitted.
  void abandon_arrays(Stream& stream) noexcept;

  void count_hit() const noexcept;
  void count_miss() const noexcept;

 private:
  [[noreturn]] void refuse_stream(const Stream& stream) const;
  void make_blocks();
  void expect_use(Timeline& queue);
  // Requires a last use of the scratch memory.
  Completion last_use_of_scratch() const noexcept;

  const std::shared_ptr<StreamsState> streams_;
  const std::shared_ptr<const KernelInfo> kernel_;
  const uint32_t most_blocks_;
  ArgumentBlocks blocks_;
  std::vector<Allocation> scratch_;
  LastWork scratch_use_;  // no queue: nothing is unfinished
  // The entry that the destructor adds to the list of retired memory. It has the blocks, and room
  // for their uses.
  std::list<Retired> at_end_;
};

}  // namespace detail

template <class... Args>
class Launcher {
 public:
  // Keeps the arguments of up to `blocks` launches; 0: of none. By default of eight, where that
  // saves time (see Cost). Throws Error.
  Launcher(Streams& streams, const Kernel<Args...>& kernel, std::optional<uint32_t> blocks = {})
      : core_(streams, kernel.shared_info(), blocks),
        kernel_(kernel),
        places_(kernel_.info().arguments) {}

  // Throws Error as Stream::launch(), for a stream of other Streams, and when memory is exhausted.
  void launch(Stream& stream, const detail::LaunchGrid& on,
              const std::type_identity_t<Args>&... args);

  // The same with host arrays for some of the arguments. Also throws Error as Stream::copy(); the
  // contents of out() and in_out() arrays are then undefined.
  template <class... Given>
  requires(sizeof...(Given) == sizeof...(Args) && (detail::is_host_array<Given> || ...) &&
           (detail::can_be_given<Given, Args>() &&
            ...)) void launch(Stream& stream, const detail::LaunchGrid& on, const Given&... given) {
    core_.begin_arrays(stream);
    OpenArrays open{&core_, &stream};
    [&]<size_t... I>(std::index_sequence<I...>) {
      // Braces evaluate the arguments, and so start the copies, in order.
      const std::tuple<Args...> args{put_in<Args>(stream, I, given)...};
      launch(stream, on, std::get<I>(args)...);
      core_.end_arrays(stream);
      if constexpr ((comes_out<Given>() || ...)) {
        (put_out(stream, I, given), ...);
        stream.synchronize();
      }
    }
    (std::index_sequence_for<Args...>());
    open.core = nullptr;
  }

  const Kernel<Args...>& kernel() const noexcept { return kernel_; }

 private:
  // Gives up the scratch memory of a launch that an exception ends.
  struct OpenArrays {
    detail::LauncherCore* core;
    Stream* stream;
    ~OpenArrays() {
      if (core != nullptr) core->abandon_arrays(*stream);
    }
  };
  template <class Arg, class Given>
  Arg put_in(Stream& stream, size_t argument, const Given& given) {
    if constexpr (detail::is_host_array<Given>) {
      const auto memory = std::as_bytes(given.memory);
      const Arg room = static_cast<Arg>(core_.room(stream, argument, memory.size()));
      if constexpr (Given::kGoesIn) core_.copy_in(stream, argument, memory);
      return room;
    } else {
      return given;
    }
  }
  template <class Given>
  void put_out(Stream& stream, size_t argument, const Given& given) {
    if constexpr (comes_out<Given>())
      core_.copy_out(stream, argument, std::as_writable_bytes(given.memory));
  }
  template <class Given>
  static constexpr bool comes_out() {
    if constexpr (detail::is_host_array<Given>) return Given::kComesOut;
    return false;
  }

  detail::LauncherCore core_;
  const Kernel<Args...> kernel_;
  const detail::ArgumentPlaces<Args...> places_;
};

template <class... Args>
void Launcher<Args...>::launch(Stream& stream, const detail::LaunchGrid& on,
                               const std::type_identity_t<Args>&... args) {
  detail::require_arguments<Args...>(kernel_.info(), on.grid.lds_bytes, args...);
  if (!core_.keeps_blocks()) {
    core_.require(stream);
    return stream.launch(kernel_, on, args...);
  }
  detail::LaunchReservation reserved = core_.reserve(stream, on);
  detail::ArgumentBlocks& blocks = core_.blocks();
  const detail::DispatchShape& shape = *reserved.shape;
  uint32_t group_segment = 0;
  detail::ArgumentBlock* block =
      blocks.find(shape, core_.queue_of(stream), [&](const std::byte* shadow) {
        group_segment = shape.packet.group_segment_size();
        return places_.holds(shadow, group_segment, args...);
      });
  if (block != nullptr) {
    core_.count_hit();
    reserved.wrote_arguments = false;
    return core_.launch(stream, std::move(reserved), *block, group_segment);
  }
  block = blocks.find_free();
  if (block != nullptr) {
    shape.put_implicit(block->shadow);
    group_segment = shape.packet.group_segment_size();
    places_.store(block->shadow, group_segment, args...);
    blocks.write(*block, shape, core_.queue_of(stream));
    core_.count_miss();
    return core_.launch(stream, std::move(reserved), *block, group_segment);
  }
  if (core_.try_take_block(stream, reserved)) {
    aql::Packet64 packet;
    detail::write_dispatch(packet, reserved.block, shape, shape.packet, places_, args...);
    core_.launch(stream, std::move(reserved), packet);
  } else {
    reserved.lock.unlock();
    stream.launch(kernel_, on, args...);
  }
  core_.count_miss();
}

}  // namespace uptempo
