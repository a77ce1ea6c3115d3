// BatchSubmitter: collects dispatches and publishes them together. One doorbell, one completion signal, on the last packet only.
//
//   BatchSubmitter batch{queue};
//   batch.dispatch(sort, Grid{16384}.by(256), keys.data(), stage, pass, 1u);
//   batch.dispatch(scale, Grid{n}.by(64), x, n).reads(x, n).writes(y, n);
//   batch.submit().wait();
//
// dispatch() copies the arguments into a kernarg block and writes the packet, header INVALID, where no processor looks yet. submit() plans the fences
// (fence_plan.hpp), admits (room, signal, timeline: everything that can fail) and publishes. Afterwards the batch is empty and may be
// used again; used again and again it makes no allocation, no system call and no HSA call but the doorbell store.
//
// Waiting: dispatch() may wait for a kernarg block, submit() for room; each has a form that never waits (try_) and submit() one with
// a deadline. Running out of time throws Error naming what was short; nothing half-written is left, and the batch is as it was: submit()
// may be called again. Only a batch longer than the ring may be partly out by then; submit() goes on with the rest, and a batch that is
// destroyed instead first closes what is out with a barrier packet (waiting for a slot). Until then it takes no more packets, and the
// queue takes no other batch: both throw Error.
//
// Thread safety: belongs to the thread that owns the queue. Lifetime: the queue outlives the batch. Dropping an unsubmitted batch leaves
// no trace. Kernels and buffers live until completion.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "engine/dispatch/command_ref.hpp"
#include "engine/dispatch/completion.hpp"
#include "engine/dispatch/dispatch_shape.hpp"
#include "engine/dispatch/handle_check.hpp"
#include "engine/dispatch/publication.hpp"
#include "engine/dispatch/queue.hpp"
#include "engine/dispatch/queue_state.hpp"
#include "engine/program/geometry.hpp"
#include "engine/program/program.hpp"
#include "engine/runtime/signal.hpp"

namespace uptempo {

struct BatchOptions {
  Timing timing = Timing::none;
  FencePolicy fences = FencePolicy::planned;
  aql::Chunking chunking{};  // one doorbell by default
  // How long dispatch() waits for a kernarg block and a plain submit() for room.
  std::chrono::nanoseconds patience = std::chrono::seconds(30);
};

class BatchSubmitter {
 public:
  // The last parameter is the library's own; see handle_check.hpp.
  explicit BatchSubmitter(Queue& queue, const BatchOptions& options = {},
                          detail::HandleChecks<detail::handle_checks> = {});
  // Over a queue without ROCr; see queue_state.hpp.
  BatchSubmitter(detail::QueueState& state, const BatchOptions& options,
                 detail::HandleChecks<detail::handle_checks> = {});
  ~BatchSubmitter();
  BatchSubmitter(const BatchSubmitter&) = delete;
  BatchSubmitter& operator=(const BatchSubmitter&) = delete;

  // Appends one dispatch. Throws Error for a geometry that kernel or agent cannot run, and when no kernarg block came free.
  template <class... Args>
  CommandRef dispatch(const Kernel<Args...>& kernel, const Grid& grid,
                      const std::type_identity_t<Args>&... args) {
    const detail::DispatchShape& shape = shape_for(kernel.info(), grid);
    std::byte* block = nullptr;
    if (takes_block<Args...>(shape)) {
      block = state_.take_kernargs_at_once(publication_.kernargs, shape.block_bytes);
      if (block == nullptr) [[unlikely]]
        block = wait_for_block(shape);
    }
    return append(kernel.info(), shape, block, args...);
  }
  // The same, but empty instead of waiting for a kernarg block.
  template <class... Args>
  std::optional<CommandRef> try_dispatch(const Kernel<Args...>& kernel, const Grid& grid,
                                         const std::type_identity_t<Args>&... args) {
    const detail::DispatchShape& shape = shape_for(kernel.info(), grid);
    std::byte* block = nullptr;
    if (takes_block<Args...>(shape)) {
      block = state_.try_take_kernargs(publication_.kernargs, shape.block_bytes);
      if (block == nullptr) return {};
    }
    return append(kernel.info(), shape, block, args...);
  }
  // The same with a kernarg block of the caller's: 64-byte aligned, host-writable kernarg memory, unused until completion. Throws Error if
  // it is too small or not aligned.
  template <class... Args>
  CommandRef dispatch_at(std::span<std::byte> block, const Kernel<Args...>& kernel, const Grid& grid,
                         const std::type_identity_t<Args>&... args) {
    const detail::DispatchShape& shape = shape_for(kernel.info(), grid);
    require_block(kernel.info(), block);
    state_.lend(block, publication_);
    return append(kernel.info(), shape, block.data(), args...);
  }
  // Appends a finished packet. Its header is taken as it is; if it comes last, a barrier-AND packet that carries the completion
  // signal follows it. Its own completion signal is the caller's affair. Throws Error for a packet of type INVALID.
  void raw(const aql::Packet64& packet);

  // Uses this signal for the completion of the next submission instead of one of the queue's. It is set to 1 by submit(); it lives, and
  // is not used otherwise, until that completion has been awaited, by every thread that does, and its times() read. Throws Error for a
  // batch that is partly out, whose signal is chosen.
  void complete_with(const Signal& signal);

  // Publishes. An empty batch gives the completion of what was submitted before. Throws Error: room did not come in time, or the
  // queue has failed.
  Completion submit();
  Completion submit(Deadline deadline);
  // Empty if it would have to wait. A batch longer than the ring cannot be submitted without waiting: throws Error.
  std::optional<Completion> try_submit();

  // Forgets everything not submitted.
  void clear() noexcept;
  size_t size() const noexcept { return publication_.packets.size(); }

  // The fence plan of the last submission, packet by packet, and in words. Valid until the next one.
  std::span<const PacketPlan> plan() { return publication_.last_plan(); }
  std::string explain();

 private:
  // Also sees to it that there is room for a packet more.
  const detail::DispatchShape& shape_for(const KernelInfo& kernel, const Grid& grid) {
    if (publication_.packets.full()) [[unlikely]]
      state_.make_room(publication_);
    return shapes_.of(kernel, grid);
  }
  template <class... Args>
  static bool takes_block(const detail::DispatchShape& shape) noexcept {
    return sizeof...(Args) != 0 || shape.block_bytes != 0;
  }
  std::byte* wait_for_block(const detail::DispatchShape& shape);
  void require_block(const KernelInfo& kernel, std::span<std::byte> block) const;

  template <class... Args>
  CommandRef append(const KernelInfo& kernel, const detail::DispatchShape& shape, std::byte* block,
                    const Args&... args) {
    uint32_t group_segment = kernel.group_segment_size;
    if constexpr (sizeof...(Args) != 0) {
      // All offsets first: a load behind the stores would wait for them.
      size_t i = 0;
      const std::array<uint32_t, sizeof...(Args)> offsets{((void)args, kernel.arguments.offset(i++))...};
      shape.put_implicit(block);
      i = 0;
      (detail::store_argument(block, offsets[i++], args, group_segment), ...);
    } else if (block != nullptr) {
      shape.put_implicit(block);
    }
    publication_.touched.next();
    aql::Packet64& packet = publication_.packets.add();
    packet = shape.packet;
    packet.set_kernarg_address(block);
    if constexpr ((std::is_same_v<Args, LocalBytes> || ...)) packet.set_group_segment_size(group_segment);
    return CommandRef(publication_.ref_of_last());
  }

  detail::QueueState& state_;
  std::chrono::nanoseconds patience_;
  detail::Publication publication_;
  detail::DispatchShapes shapes_;
};

}  // namespace uptempo
