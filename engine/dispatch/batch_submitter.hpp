// BatchSubmitter: collects dispatches and publishes them together. One doorbell, one completion signal, on the last packet only.
//
//   BatchSubmitter batch{queue};
//   batch.dispatch(sort, Grid{16384}.by(256), keys.data(), stage, pass, 1u);
//   batch.dispatch(scale, Grid{n}.by(64), x, n).reads(x, n).writes(y, n);
//   batch.submit().wait();
//
//   const Prepared step = batch.prepare(advance, Grid{n}.by(64));   // for what is dispatched often
//   for (uint32_t i = 0; i < 1000; ++i) step.dispatch(x, n, i);
//   step.dispatch_each(1000, [&](uint32_t i) noexcept { return std::tuple(x, n, i); });   // the same, cheapest
//
// dispatch() copies the arguments into a kernarg block and writes the packet where no processor looks yet (packet_store.hpp). submit() plans the fences
// (fence_rules.hpp), admits (room, signal, timeline: everything that can fail) and publishes. Afterwards the batch is empty and may be
// used again; used again and again it makes no allocation, no system call and no HSA call but the doorbell store.
//
// What a dispatch costs. dispatch(kernel, grid, ...) finds out whether kernel and grid are those of the last time; a prepared one need not; dispatch_each() also
// keeps in registers what its dispatches have in common, and costs a little more than half of that. tools/dispatch_bench has a row for each.
//
// Waiting: dispatch() may wait for a kernarg block, submit() for room; each has a form that never waits (try_) and submit() one with
// a deadline. Running out of time throws Error naming what was short; nothing half-written is left, and the batch is as it was: submit()
// may be called again. Only a batch longer than the ring may be partly out by then; submit() goes on with the rest, and a batch that is
// destroyed instead first closes what is out with a barrier packet (waiting for a slot). Until then it takes no more packets, and the
// queue takes no other batch: both throw Error.
//
// Thread safety: belongs to the thread that owns the queue. Dropping an unsubmitted batch leaves no
// trace. Kernels and buffers live until completion.
//
// Lifetime: the queue, and the Runtime, outlive the use of the batch. Where one of them goes first,
// packets that were not submitted are dropped; from then on everything that adds packets or
// submits, through Prepared too, throws Error. clear(), size(), plan(), explain() and the
// destructor stay harmless.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>

#include "engine/dispatch/command_ref.hpp"
#include "engine/completion/completion.hpp"
#include "engine/dispatch/dispatch_shape.hpp"
#include "engine/runtime/handle_check.hpp"
#include "engine/dispatch/publication.hpp"
#include "engine/dispatch/queue.hpp"
#include "engine/dispatch/batch_queue.hpp"
#include "engine/program/grid.hpp"
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

template <class... Args>
class Prepared;

namespace detail {

// Slots in a row, and a kernarg block for each; null where the kernel takes no arguments.
struct DispatchSlots {
  aql::Packet64* packets;
  std::byte* blocks;
  uint32_t count;
};

}  // namespace detail

class BatchSubmitter {
 public:
  // The last parameter is the library's own; see handle_check.hpp.
  explicit BatchSubmitter(Queue& queue, const BatchOptions& options = {},
                          detail::HandleChecks<detail::handle_checks> = {});
  // Over a queue without ROCr; see batch_queue.hpp.
  BatchSubmitter(detail::BatchQueue& state, const BatchOptions& options,
                 detail::HandleChecks<detail::handle_checks> = {});
  ~BatchSubmitter();
  BatchSubmitter(const BatchSubmitter&) = delete;
  BatchSubmitter& operator=(const BatchSubmitter&) = delete;

  // Makes a kernel ready to be dispatched with this grid, for as long as the batch lives.
  // Allocates, once for a kernel and a grid. Throws Error for a geometry or an amount of group
  // memory (grid.hpp) that kernel or agent cannot run.
  template <class... Args>
  Prepared<Args...> prepare(const Kernel<Args...>& kernel, const Grid& grid) {
    return Prepared<Args...>(*this, kernel.info(), prepare(kernel.shared_info(), grid));
  }
  // Appends one dispatch. Throws Error for a geometry or an amount of group memory that kernel or
  // agent cannot run, and when no kernarg block came free.
  template <class... Args>
  CommandRef dispatch(const Kernel<Args...>& kernel, const Grid& grid,
                      const std::type_identity_t<Args>&... args) {
    const detail::DispatchShape& shape = shape_for(kernel.info(), grid);
    detail::require_local_bytes<Args...>(kernel.info(), grid.lds_bytes, args...);
    std::byte* const block = take_block<Args...>(shape);
    return append(shape, detail::offsets<Args...>(kernel.info()), block, args...);
  }
  // The same, but empty instead of waiting for a kernarg block.
  template <class... Args>
  std::optional<CommandRef> try_dispatch(const Kernel<Args...>& kernel, const Grid& grid,
                                         const std::type_identity_t<Args>&... args) {
    const detail::DispatchShape& shape = shape_for(kernel.info(), grid);
    detail::require_local_bytes<Args...>(kernel.info(), grid.lds_bytes, args...);
    std::byte* block = nullptr;
    if (detail::takes_block<Args...>(shape)) {
      block = guest_.state->try_take_kernargs(publication_.kernargs, shape.block_bytes);
      if (block == nullptr) return {};
    }
    return append(shape, detail::offsets<Args...>(kernel.info()), block, args...);
  }
  // The same with a kernarg block of the caller's: 64-byte aligned, host-writable kernarg memory, unused until completion. Throws Error if
  // it is too small or not aligned.
  template <class... Args>
  CommandRef dispatch_at(std::span<std::byte> block, const Kernel<Args...>& kernel, const Grid& grid,
                         const std::type_identity_t<Args>&... args) {
    const detail::DispatchShape& shape = shape_for(kernel.info(), grid);
    detail::require_local_bytes<Args...>(kernel.info(), grid.lds_bytes, args...);
    require_block(kernel.info(), block);
    guest_.state->lend(block, publication_);
    return append(shape, detail::offsets<Args...>(kernel.info()), block.data(), args...);
  }
  // Appends a finished packet. Its header is taken as it is; if it comes last, a barrier-AND packet
  // that carries the completion signal follows it. Its own completion signal is the caller's
  // affair. A dispatch's group_segment_size is static and dynamic group memory together, and is not
  // checked. Throws Error for a packet of type INVALID.
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
  template <class... Args>
  friend class Prepared;
  struct PreparedShape {
    std::shared_ptr<const KernelInfo> kernel;  // keeps the code loaded
    detail::DispatchShape shape;
  };

  void make_room() {
    if (publication_.packets.full()) [[unlikely]]
      guest_.state->make_room(publication_);
  }
  // Also sees to it that there is room for a packet more.
  const detail::DispatchShape& shape_for(const KernelInfo& kernel, const Grid& grid) {
    make_room();
    return shapes_.of(kernel, grid);
  }
  template <class... Args>
  std::byte* take_block(const detail::DispatchShape& shape) {
    if (!detail::takes_block<Args...>(shape)) return nullptr;
    if (publication_.kernargs.fits(shape.block_bytes)) [[likely]]
      return publication_.kernargs.take(shape.block_bytes);
    return wait_for_block(shape.block_bytes);
  }
  // Slots for up to `count` dispatches and their kernarg blocks, at least one. Throws Error if no block comes free. There is room for a packet.
  detail::DispatchSlots take_slots(uint32_t count, uint32_t block_bytes);
  const detail::DispatchShape& prepare(std::shared_ptr<const KernelInfo> kernel, const Grid& grid);
  std::byte* wait_for_block(uint32_t block_bytes);
  void require_not_ended() const;
  void require_block(const KernelInfo& kernel, std::span<std::byte> block) const;

  template <class... Args>
  CommandRef append(const detail::DispatchShape& shape, const std::array<uint32_t, sizeof...(Args)>& offsets,
                    std::byte* block, const Args&... args) {
    publication_.touched.next();
    detail::write_dispatch(publication_.packets.add(), block, shape, shape.packet, offsets, args...);
    return CommandRef(publication_.ref_of_last());
  }

  detail::QueueGuest guest_;
  std::chrono::nanoseconds patience_;
  detail::Publication publication_;
  detail::DispatchShapes shapes_;
  std::deque<PreparedShape> prepared_;
};

// What Prepared::dispatch_each() takes: f(uint32_t i) noexcept -> std::tuple<Args...>. One that may throw is refused when compiled: slots are taken before they are
// filled.
template <class F, class... Args>
concept ArgumentsOf = std::is_nothrow_invocable_r_v<std::tuple<Args...>, F&, uint32_t>;

// A kernel with its grid, made ready by a batch: geometry checked, packet and hidden arguments worked out. Thread safety and lifetime: those of the batch.
template <class... Args>
class Prepared {
 public:
  // Appends one dispatch to the batch. Throws Error when no kernarg block came free, and for
  // LocalBytes beyond what the agent has.
  CommandRef dispatch(const Args&... args) const;
  // Appends `count` dispatches, whose arguments are the tuples arguments_of(0) ..
  // arguments_of(count - 1): what they have in common stays in registers. Throws Error as
  // dispatch(); the batch holds the dispatches before it then. arguments_of does not touch the
  // batch, and is noexcept. With LocalBytes among the arguments it costs as much as that many
  // dispatch(): each amount is checked before a slot is taken.
  template <ArgumentsOf<Args...> F>
  void dispatch_each(uint32_t count, F&& arguments_of) const;

 private:
  friend class BatchSubmitter;
  Prepared(BatchSubmitter& batch, const KernelInfo& kernel, const detail::DispatchShape& shape) noexcept
      : batch_(&batch), kernel_(&kernel), shape_(&shape), offsets_(detail::offsets<Args...>(kernel)) {}
  uint32_t lds_bytes() const noexcept {
    return shape_->packet.group_segment_size() - kernel_->group_segment_size;
  }

  BatchSubmitter* batch_;
  const KernelInfo* kernel_;
  const detail::DispatchShape* shape_;
  std::array<uint32_t, sizeof...(Args)> offsets_;
};

template <class... Args>
CommandRef Prepared<Args...>::dispatch(const Args&... args) const {
  if constexpr (detail::takes_local_bytes<Args...>)
    detail::require_local_bytes(*kernel_, lds_bytes(), args...);
  batch_->make_room();
  return batch_->append(*shape_, offsets_, batch_->template take_block<Args...>(*shape_), args...);
}

template <class... Args>
template <ArgumentsOf<Args...> F>
void Prepared<Args...>::dispatch_each(uint32_t count, F&& arguments_of) const {
  if constexpr (detail::takes_local_bytes<Args...>) {
    for (uint32_t i = 0; i < count; ++i) {
      const std::tuple<Args...> arguments = arguments_of(i);
      std::apply([&](const Args&... args) { dispatch(args...); }, arguments);
    }
    return;
  }
  // Copies: the compiler must otherwise think that a packet's stores change them.
  const detail::DispatchShape& shape = *shape_;
  const std::array<uint32_t, sizeof...(Args)> offsets = offsets_;
  const aql::Packet64 packet = shape.packet;
  const uint32_t block_bytes = shape.block_bytes;
  for (uint32_t i = 0; i < count;) {
    batch_->make_room();
    const detail::DispatchSlots slots = batch_->take_slots(count - i, block_bytes);
    aql::Packet64* slot = slots.packets;
    std::byte* block = slots.blocks;
    for (const uint32_t end = i + slots.count; i < end; ++i, ++slot, block += block_bytes) {
      const std::tuple<Args...> arguments = arguments_of(i);
      std::apply(
          [&](const Args&... args) { detail::write_dispatch(*slot, block, shape, packet, offsets, args...); },
          arguments);
    }
  }
}

}  // namespace uptempo
