// Launcher: a handle for one kernel that is launched again and again, mostly with the arguments that it had before.
//
//   Launcher<float*, const float*, float, uint32_t> step{streams, program.kernel<float*, const float*, float, uint32_t>("step")};
//   for (uint32_t i = 0; i < steps; ++i) step.launch(stream, Grid{n}.by(256), y, x, dt, n);
//
// Arguments that lie ready. The handle keeps a few kernarg blocks of its own. A launch whose arguments are the bytes that one of them holds writes none: its packet names that
// block. Other arguments go into a block that no unfinished launch reads, else into the queue's kernarg memory as with Stream::launch(): a block is never changed while it
// is being read, on whichever stream. Hidden arguments are part of the comparison, so another grid or queue uses a block only where they are the same for it.
// Compared is with copies in ordinary memory, first with that of the block that is expected: the one that came next the last time. So sets of arguments that take turns cost one
// comparison each.
//
// What it costs and saves: tools/bench/stream shows from which size of the arguments on skipping beats writing. For arguments that change with every launch it is a loss, the comparison and a
// second copy; skip_arguments(false) turns it off, and the handle is then no more than Stream::launch(). Counters (counters.hpp): argument_hits, argument_misses,
// argument_bytes_saved.
//
// Arrays of the host. Where the kernel takes a pointer, launch() takes in(x), out(x) or in_out(x) of a vector or span as well (launch_arrays.hpp): it copies the array to device memory of the
// handle, launches, and copies back, all in the order of the stream (Stream::copy(), through its staging memory). The host waits once, after the launch and only where something comes out; the kernel and its
// copies are never waited for before. A handle that was used on another stream puts the launch behind that use. out() and in_out() are complete when the call returns.
//
// Memory. Scratch memory for arrays is allocated by the first launch that needs it, grows where it must, and launches without arrays touch none. Nothing else is allocated before the first launch, then blocks as far as they are needed, up to LauncherOptions::blocks. In steady state nothing is allocated or freed, and no
// signal made. The destructor waits for nothing: memory that launches may still read is given back when they are over, at a later destruction, or with the Streams.
//
// Order, visibility, back-pressure and errors are those of Stream::launch(). Kernels must not write to their kernarg block (no compiler makes one that does); with launches that
// share one it would be seen by the next.
//
// Thread safety: one thread at a time for one handle, with any stream that this thread may use. Lifetime: keeps the kernel's code loaded and the queues alive, so that streams and Streams may go
// before it; the code itself, as with Stream::launch(), is needed until completion: hold on to the Program or a Kernel where the handle may go earlier.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "engine/program/grid.hpp"
#include "engine/program/program.hpp"
#include "engine/stream/argument_blocks.hpp"
#include "engine/stream/launch_arrays.hpp"
#include "engine/stream/stream.hpp"
#include "engine/stream/streams.hpp"

namespace uptempo {

struct LauncherOptions {
  bool skip_arguments = true;
  uint32_t blocks = 8;  // kept at most
};

namespace detail {

// What does not depend on the types of the arguments.
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
      refuse_stream();
    return stream.prepare();
  }
  void launch(Stream& stream, StreamQueue& queue, StreamQueue::Turn&& turn, aql::Packet64& packet) {
    queue.launch(std::move(turn), stream.position_, packet);
    if (stream.follows_others_) [[unlikely]]
      stream.note_order();
  }
  // The same for a dispatch that reads that block.
  void launch(Stream& stream, StreamQueue& queue, StreamQueue::Turn&& turn, ArgumentBlock& block,
              uint32_t group_segment) {
    aql::Packet64 packet;
    aql::store_behind_gate(packet, turn.shape->packet, block.block, group_segment);
    queue.launch(std::move(turn), stream.position_, packet);
    block.note_use(queue, stream.position_.epoch);
    blocks_.note_last(block);
    if (stream.follows_others_) [[unlikely]]
      stream.note_order();
  }
  // Before scratch memory is used on a stream: the stream comes after its use on another.
  void begin_arrays(Stream& stream);
  // The last launch on the stream uses it.
  void end_arrays(Stream& stream) {
    scratch_.standing = {.queue = stream.queue_,
                         .position = stream.position_,
                         .behind_host = stream.is_behind_host()};
  }
  // Nobody knows what uses it.
  void abandon_arrays(const Stream& stream);
  LaunchScratch& scratch() noexcept { return scratch_; }
  const Agent& agent() const noexcept;

  void count_hit() const noexcept;
  void count_miss() const noexcept;

 private:
  [[noreturn]] void refuse_stream() const;

  const std::shared_ptr<StreamsState> streams_;
  const std::shared_ptr<const KernelInfo> kernel_;
  ArgumentBlocks blocks_;
  LaunchScratch scratch_;
};

}  // namespace detail

template <class... Args>
class Launcher {
 public:
  // Throws Error for options without a block.
  Launcher(Streams& streams, const Kernel<Args...>& kernel, const LauncherOptions& options = {})
      : core_(streams, kernel.shared_info(), options),
        kernel_(kernel),
        offsets_(detail::offsets<Args...>(kernel.info())),
        skips_(options.skip_arguments && sizeof...(Args) != 0) {}

  // Throws Error as Stream::launch(), for a stream of other Streams, and when memory is exhausted.
  void launch(Stream& stream, const Grid& grid, const std::type_identity_t<Args>&... args);

  // The same with arrays of the host for some of the arguments. Throws Error as Stream::copy(), too; what comes out is undefined then.
  template <class... Given>
  requires(sizeof...(Given) == sizeof...(Args) && (detail::is_host_array<Given> || ...) &&
           (detail::can_be_given<Given, Args>() &&
            ...)) void launch(Stream& stream, const Grid& grid, const Given&... given);

  // What is kept stays ready.
  void skip_arguments(bool on) noexcept { skips_ = on && sizeof...(Args) != 0; }
  bool skips_arguments() const noexcept { return skips_; }

  const Kernel<Args...>& kernel() const noexcept { return kernel_; }
  // Blocks that have been allocated so far.
  size_t blocks() noexcept { return core_.blocks().size(); }

 private:
  // Whether the explicit arguments are those of a block. `group_segment` is that of the dispatch then.
  bool holds(const std::byte* shadow, const detail::DispatchShape& shape, uint32_t& group_segment,
             const Args&... args) const noexcept {
    group_segment = shape.packet.group_segment_size();
    [[maybe_unused]] size_t i = 0;
    return (detail::holds_argument(shadow, offsets_[i++], args, group_segment) && ...);
  }
  uint32_t fill(std::byte* shadow, const detail::DispatchShape& shape,
                const Args&... args) const noexcept {
    shape.put_implicit(shadow);
    uint32_t group_segment = shape.packet.group_segment_size();
    [[maybe_unused]] size_t i = 0;
    (detail::store_argument(shadow, offsets_[i++], args, group_segment), ...);
    return group_segment;
  }

  template <class Arg, class Given>
  Arg put_in(Stream& stream, size_t argument, const Given& given) {
    if constexpr (detail::is_host_array<Given>) {
      const auto memory = std::as_bytes(given.memory);
      const Arg room = reinterpret_cast<Arg>(
          core_.scratch().room(stream, core_.agent(), argument, memory.size()));
      if constexpr (Given::goes_in) core_.scratch().copy_in(stream, argument, memory);
      return room;
    } else {
      return given;
    }
  }
  template <class Given>
  void put_out(Stream& stream, size_t argument, const Given& given) {
    if constexpr (detail::is_host_array<Given>)
      if constexpr (Given::comes_out)
        core_.scratch().copy_out(stream, argument, std::as_writable_bytes(given.memory));
  }
  template <class Given>
  static constexpr bool comes_out() {
    if constexpr (detail::is_host_array<Given>) return Given::comes_out;
    return false;
  }

  detail::LauncherCore core_;
  const Kernel<Args...> kernel_;
  const std::array<uint32_t, sizeof...(Args)> offsets_;
  bool skips_;
};

template <class... Args>
void Launcher<Args...>::launch(Stream& stream, const Grid& grid,
                               const std::type_identity_t<Args>&... args) {
  detail::require_local_bytes<Args...>(kernel_.info(), grid.lds_bytes, args...);
  detail::StreamQueue& queue = core_.prepare(stream);
  detail::ArgumentBlocks& blocks = core_.blocks();
  if (!skips_) return stream.launch(kernel_, grid, args...);
  for (;;) {
    detail::StreamQueue::Turn turn = queue.take_turn_at(kernel_.info(), grid);
    uint32_t group_segment = 0;
    detail::ArgumentBlock* block = blocks.find(*turn.shape, queue, [&](const std::byte* shadow) {
      return holds(shadow, *turn.shape, group_segment, args...);
    });
    if (block != nullptr) {
      core_.count_hit();
      return core_.launch(stream, queue, std::move(turn), *block, group_segment);
    }
    block = blocks.find_free();
    if (block != nullptr) {
      group_segment = fill(block->shadow, *turn.shape, args...);
      blocks.write(*block, *turn.shape, queue);
      core_.count_miss();
      return core_.launch(stream, queue, std::move(turn), *block, group_segment);
    }
    if (blocks.can_grow()) {  // not under the queue's lock: it may take long
      turn.lock.unlock();
      blocks.grow();
      continue;
    }
    if (!queue.try_take_block(turn)) {
      turn.lock.unlock();
      stream.launch(kernel_, grid, args...);
      return core_.count_miss();
    }
    core_.count_miss();
    aql::Packet64 packet;
    detail::write_dispatch(packet, turn.block, *turn.shape, turn.shape->packet, offsets_, args...);
    return core_.launch(stream, queue, std::move(turn), packet);
  }
}

template <class... Args>
template <class... Given>
requires(sizeof...(Given) == sizeof...(Args) && (detail::is_host_array<Given> || ...) &&
         (detail::can_be_given<Given, Args>() &&
          ...)) void Launcher<Args...>::launch(Stream& stream, const Grid& grid,
                                               const Given&... given) {
  core_.begin_arrays(stream);
  try {
    [&]<size_t... I>(std::index_sequence<I...>) {
      // In braces the arguments, and with them the copies, are in order.
      const std::tuple<Args...> args{put_in<Args>(stream, I, given)...};
      launch(stream, grid, std::get<I>(args)...);
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

}  // namespace uptempo
