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
// comparison, so another grid or queue uses a block only if they are equal. The handle compares
// with copies in ordinary memory. It starts with the block that followed the last-used block the
// previous time, so alternating sets of arguments cost one comparison each.
//
// Cost: tools/bench/stream shows the argument size from which skipping is cheaper than writing. For
// arguments that change with every launch, skipping adds a comparison and a second copy.
// skip_arguments(false) turns it off; the handle then works like Stream::launch(). The counters
// argument_hits, argument_misses and argument_bytes_saved (counters.hpp) count the effect.
//
// Host arrays: where the kernel takes a pointer, launch() also takes in(x), out(x) or in_out(x) of
// a vector or span (launch_arrays.hpp). It copies the array to device memory of the handle,
// launches, and copies back, all in the order of the stream (Stream::copy(), through its staging
// memory). The host waits once, after the launch, and only if there is an out() or in_out() array.
// Such arrays are complete when the call returns. A handle that was used on another stream orders
// the launch after that use.
//
// Memory: the first launch that needs scratch memory for arrays allocates it; later ones grow it on
// demand, and launches without arrays use none. Blocks are allocated on demand from the first
// launch on, up to LauncherOptions::blocks. In steady state a launch allocates and frees nothing
// and makes no signal. The destructor does not wait. Memory that launches may still read is freed
// after they have completed, as by Stream::free().
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

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "engine/program/grid.hpp"
#include "engine/program/program.hpp"
#include "engine/stream/detail/argument_blocks.hpp"
#include "engine/stream/launch_arrays.hpp"
#include "engine/stream/stream.hpp"
#include "engine/stream/streams.hpp"

namespace uptempo {

struct LauncherOptions {
  bool skip_arguments = true;
  uint32_t blocks = 8;  // kept at most
};

namespace detail {

struct Retired;

// The part of a Launcher that does not depend on the argument types.
class LauncherCore {
 public:
  LauncherCore(Streams& streams, std::shared_ptr<const KernelInfo> kernel,
               const LauncherOptions& options);
  ~LauncherCore();
  LauncherCore(const LauncherCore&) = delete;
  LauncherCore& operator=(const LauncherCore&) = delete;

  const KernelInfo& kernel() const noexcept { return *kernel_; }
  ArgumentBlocks& blocks() noexcept { return blocks_; }

  // The queue for the stream's next packet. Throws Error for a stream of other Streams.
  StreamQueue& prepare(Stream& stream) const {
    if (stream.streams_ != streams_) [[unlikely]]
      refuse_stream(stream);
    return stream.prepare();
  }
  void launch(Stream& stream, StreamQueue& queue, LaunchReservation&& reserved,
              aql::Packet64& packet) {
    detail::launch(queue, std::move(reserved), stream.position_, packet);
    if (stream.follows_others_) [[unlikely]]
      stream.note_order();
  }
  // The same for a dispatch that reads `block`.
  void launch(Stream& stream, StreamQueue& queue, LaunchReservation&& reserved,
              ArgumentBlock& block, uint32_t group_segment);
  // Call before scratch memory is used on a stream. Orders the stream after a use on another one.
  void begin_arrays(Stream& stream);
  // Records that the stream's last launch uses the scratch memory.
  void end_arrays(Stream& stream) {
    scratch_.last_work = {.queue = stream.queue_,
                          .position = stream.position_,
                          .behind_host = stream.is_behind_host()};
  }
  // Call after an error. The scratch memory is freed after all that the stream has submitted.
  void abandon_arrays(const Stream& stream) noexcept;
  LaunchScratch& scratch() noexcept { return scratch_; }
  const Agent& agent() const noexcept;

  void count_hit() const noexcept;
  void count_miss() const noexcept;

 private:
  [[noreturn]] void refuse_stream(const Stream& stream) const;
  // Requires a last use of the scratch memory.
  Completion last_use_of_scratch() const noexcept;

  const std::shared_ptr<StreamsState> streams_;
  const std::shared_ptr<const KernelInfo> kernel_;
  ArgumentBlocks blocks_;
  LaunchScratch scratch_;
  // Places for what the destructor and abandon_arrays() give back, so that they need no memory.
  std::list<Retired> at_end_, at_error_;
};

}  // namespace detail

template <class... Args>
class Launcher {
 public:
  // Throws Error if `options.blocks` is 0.
  Launcher(Streams& streams, const Kernel<Args...>& kernel, const LauncherOptions& options = {})
      : core_(streams, kernel.shared_info(), options),
        kernel_(kernel),
        places_(kernel_.info().arguments),
        skips_(can_skip(options.skip_arguments)) {}

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
    try {
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
    } catch (...) {
      core_.abandon_arrays(stream);
      throw;
    }
  }

  // Kept arguments stay valid.
  void skip_arguments(bool on) noexcept { skips_ = can_skip(on); }

  const Kernel<Args...>& kernel() const noexcept { return kernel_; }
  // Blocks that have been allocated so far.
  size_t blocks() noexcept { return core_.blocks().size(); }

 private:
  bool can_skip(bool on) const noexcept {
    return on && kernel_.info().arguments.explicit_count() != 0;
  }
  // True if the block holds these explicit arguments. `group_segment` is then the dispatch's.
  bool holds(const std::byte* shadow, const detail::DispatchShape& shape, uint32_t& group_segment,
             const Args&... args) const noexcept {
    group_segment = shape.packet.group_segment_size();
    return places_.holds(shadow, group_segment, args...);
  }
  uint32_t fill(std::byte* shadow, const detail::DispatchShape& shape,
                const Args&... args) const noexcept {
    shape.put_implicit(shadow);
    uint32_t group_segment = shape.packet.group_segment_size();
    places_.store(shadow, group_segment, args...);
    return group_segment;
  }

  template <class Arg, class Given>
  Arg put_in(Stream& stream, size_t argument, const Given& given) {
    if constexpr (detail::is_host_array<Given>) {
      const auto memory = std::as_bytes(given.memory);
      const Arg room = reinterpret_cast<Arg>(
          core_.scratch().room(stream, core_.agent(), argument, memory.size()));
      if constexpr (Given::kGoesIn) core_.scratch().copy_in(stream, argument, memory);
      return room;
    } else {
      return given;
    }
  }
  template <class Given>
  void put_out(Stream& stream, size_t argument, const Given& given) {
    if constexpr (detail::is_host_array<Given>)
      if constexpr (Given::kComesOut)
        core_.scratch().copy_out(stream, argument, std::as_writable_bytes(given.memory));
  }
  template <class Given>
  static constexpr bool comes_out() {
    if constexpr (detail::is_host_array<Given>) return Given::kComesOut;
    return false;
  }

  detail::LauncherCore core_;
  const Kernel<Args...> kernel_;
  const detail::ArgumentPlaces<Args...> places_;
  bool skips_;
};

template <class... Args>
void Launcher<Args...>::launch(Stream& stream, const detail::LaunchGrid& on,
                               const std::type_identity_t<Args>&... args) {
  detail::require_arguments<Args...>(kernel_.info(), on.grid.lds_bytes, args...);
  detail::StreamQueue& queue = core_.prepare(stream);
  detail::ArgumentBlocks& blocks = core_.blocks();
  if (!skips_) return stream.launch(kernel_, on, args...);
  for (;;) {
    detail::LaunchReservation reserved = detail::reserve_launch_at(queue, kernel_.info(), on.grid);
    reserved.site = on.site;
    uint32_t group_segment = 0;
    detail::ArgumentBlock* block =
        blocks.find(*reserved.shape, queue, [&](const std::byte* shadow) {
          return holds(shadow, *reserved.shape, group_segment, args...);
        });
    if (block != nullptr) {
      core_.count_hit();
      reserved.wrote_arguments = false;
      return core_.launch(stream, queue, std::move(reserved), *block, group_segment);
    }
    block = blocks.find_free();
    if (block != nullptr) {
      group_segment = fill(block->shadow, *reserved.shape, args...);
      blocks.write(*block, *reserved.shape, queue);
      core_.count_miss();
      return core_.launch(stream, queue, std::move(reserved), *block, group_segment);
    }
    if (blocks.can_grow()) {  // not under the queue's lock: it may take long
      reserved.lock.unlock();
      blocks.grow();
      continue;
    }
    if (!detail::try_take_block(queue, reserved)) {
      reserved.lock.unlock();
      stream.launch(kernel_, on, args...);
      return core_.count_miss();
    }
    core_.count_miss();
    aql::Packet64 packet;
    detail::write_dispatch(packet, reserved.block, *reserved.shape, reserved.shape->packet, places_,
                           args...);
    return core_.launch(stream, queue, std::move(reserved), packet);
  }
}

}  // namespace uptempo
