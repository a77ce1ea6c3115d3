// BatchSubmitter: collects dispatches and publishes them together, with one doorbell and one
// completion signal, on the last packet.
//
//   BatchSubmitter batch{queue};
//   batch.dispatch(sort, Grid{16384}.by(256), keys.data(), stage, pass, 1u);
//   batch.dispatch(scale, Grid{n}.by(64), x, n).reads(x, n).writes(y, n);
//   batch.submit().wait();
//
//   // For a kernel that is dispatched often:
//   const Prepared step = batch.prepare(advance, Grid{n}.by(64));
//   for (uint32_t i = 0; i < 1000; ++i) step.dispatch(x, n, i);
//   // The same at the lowest cost:
//   step.dispatch_each(1000, [&](uint32_t i) noexcept { return std::tuple(x, n, i); });
//
// dispatch() copies the arguments into a kernarg block and keeps the packet. submit() plans the
// fences (fence_plan.hpp), reserves (ring slots, signals, a place on the timeline: every step that
// can fail) and publishes. The batch is empty afterwards and can be reused. In a steady state,
// submit() makes no allocation, no system call and no HSA call except the doorbell store.
//
// Cost: dispatch(kernel, grid, ...) compares kernel and grid with the kernel's last dispatch.
// Prepared skips that, and dispatch_each() costs a little more than half of its dispatch().
// tools/bench/dispatch measures each form.
//
// Waiting: dispatch() may wait for a kernarg block, submit() for ring slots, signals and the
// timeline. The try_ forms never wait. A call that runs out of time throws an Error that names the
// exhausted resource. It keeps the batch, so the caller can submit again.
//
// Longer than the ring: a batch of more packets than the ring less eight slots (longest_run() in
// writer.hpp) is published in parts, each with a barrier packet and a completion signal at its end.
// If the deadline passes between two parts, submit() throws Error, and the next submit() publishes
// the rest. Until then the batch accepts no more packets, and other batches of the queue may pass
// it. Its next packet waits for them. Destroying or clearing it drops the rest; the published parts
// run, and keep what they use. A signal of complete_with() is 1 from the first part on, and stays 1
// if the rest is dropped.
//
// Thread safety: the thread that owns the queue.
//
// Lifetime: kernels and buffers must live until completion. The queue and the Runtime must outlive
// the use of the batch. If one of them is destroyed first, unsubmitted packets are dropped, and
// every call that adds packets or submits throws Error, also through Prepared. Destroying or
// clearing an unsubmitted batch has no effect on the queue.
//
// Moves: packets, Prepared and CommandRef follow a batch that is moved. A moved-from batch may be
// destroyed, cleared or assigned to and has the size 0; its other functions throw Error.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>

#include <uptempo/completion/completion.hpp>
#include <uptempo/dispatch/detail/batch_state.hpp>
#include <uptempo/dispatch/queue.hpp>
#include <uptempo/fences/declarations.hpp>
#include <uptempo/program/grid.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/signal.hpp>
#include <uptempo/runtime/tried.hpp>

namespace uptempo {

struct BatchOptions {
  Timing timing = Timing::none;
  FencePolicy fences = FencePolicy::by_need;
  aql::Chunking chunking{};  // one doorbell by default
  // Longest wait of dispatch() for a kernarg block, and of submit() without a deadline for room.
  std::chrono::nanoseconds patience = std::chrono::seconds(30);
};

template <class... Args>
class Prepared;

// The packet just appended to a batch, for declarations about it.
class CommandRef : public Declaring<CommandRef, detail::PacketRef> {
 private:
  friend class BatchSubmitter;
  template <class...>
  friend class Prepared;
  using Declaring::Declaring;
  static Tried<CommandRef> of(const Tried<detail::PacketRef>& packet) {
    if (packet) [[likely]]
      return CommandRef(*packet);
    return packet.refusal();
  }
};

class BatchSubmitter {
 public:
  explicit BatchSubmitter(Queue& queue, const BatchOptions& options = {});
  BatchSubmitter(BatchSubmitter&&) noexcept;
  BatchSubmitter& operator=(BatchSubmitter&&) noexcept;
  ~BatchSubmitter();

  // Prepares a kernel for dispatches with this grid; valid for the life of the batch, also after it
  // is moved. Allocates once per kernel and grid. Throws Error if the kernel or the agent cannot
  // run the geometry or the amount of group memory (grid.hpp).
  template <class... Args>
  Prepared<Args...> prepare(const Kernel<Args...>& kernel, const Grid& grid) {
    detail::BatchState& batch = state("BatchSubmitter::prepare");
    return Prepared<Args...>(batch, kernel.info(), batch.prepare(kernel.shared_info(), grid));
  }
  // Appends one dispatch. Throws Error if the kernel or the agent cannot run the geometry or the
  // amount of group memory, if Arguments do not fit (arguments.hpp), and if no kernarg block became
  // free in time. Always inline: with arguments of run time, a call costs a third of a dispatch.
  template <class... Args>
  [[gnu::always_inline]] CommandRef dispatch(const Kernel<Args...>& kernel, const Grid& grid,
                                             const std::type_identity_t<Args>&... args) {
    detail::BatchState& batch = state("BatchSubmitter::dispatch");
    const detail::DispatchShape& shape = batch.shape_for(kernel.info(), grid);
    detail::require_arguments<Args...>(kernel.info(), grid.lds_bytes, args...);
    std::byte* const block = batch.take_block<Args...>(shape);
    return CommandRef(batch.append(shape, detail::ArgumentPlaces<Args...>(kernel.info().arguments),
                                   block, args...));
  }
  // As dispatch(), but does not wait, and returns refusals as values (tried.hpp):
  // ErrorCode::argument, kernargs.
  template <class... Args>
  Tried<CommandRef> try_dispatch(const Kernel<Args...>& kernel, const Grid& grid,
                                 const std::type_identity_t<Args>&... args) {
    detail::BatchState& batch = state("BatchSubmitter::try_dispatch");
    batch.make_room();
    const Tried<const detail::DispatchShape*> shape = batch.shapes.try_of(kernel.info(), grid);
    if (!shape) [[unlikely]]
      return shape.refusal();
    return CommandRef::of(
        batch.try_append("BatchSubmitter::try_dispatch", kernel.info(), grid.lds_bytes, **shape,
                         detail::ArgumentPlaces<Args...>(kernel.info().arguments), args...));
  }
  // As dispatch(), with the caller's kernarg block: host-writable kernarg memory, 64-byte aligned,
  // unused until completion. Throws Error if the block is smaller than
  // kernel.info().arguments.block_bytes(), or misaligned, or if an earlier dispatch of this queue,
  // not complete yet, reads part of these bytes. Other queues are not asked.
  template <class... Args>
  CommandRef dispatch_at(std::span<std::byte> block, const Kernel<Args...>& kernel,
                         const Grid& grid, const std::type_identity_t<Args>&... args) {
    detail::BatchState& batch = state("BatchSubmitter::dispatch_at");
    const detail::DispatchShape& shape = batch.shape_for(kernel.info(), grid);
    detail::require_arguments<Args...>(kernel.info(), grid.lds_bytes, args...);
    batch.lend(kernel.info(), block);
    return CommandRef(batch.append(shape, detail::ArgumentPlaces<Args...>(kernel.info().arguments),
                                   block.data(), args...));
  }
  // Appends a finished packet. Its header and completion signal stay as they are. If it is the last
  // packet, submit() appends a barrier-AND packet for the completion signal. In a dispatch packet,
  // group_segment_size is the sum of static and dynamic group memory and is not checked. Its kernel
  // counts as one that reads its packet (KernelInfo::reads_packet). Throws Error for a packet of
  // type INVALID.
  void raw(const aql::Packet64& packet);

  // Later packets of the batch begin when the signal is zero, and see what its setter wrote before,
  // wherever that is. Appends one packet. So a batch waits on the device for a batch of another
  // agent:
  //
  //   const Signal halo{SignalKind::interrupt, 1};  // 1: not yet
  //   left.complete_with(halo);                     // a batch of one GPU
  //   right.after(halo);                            // a batch of another one
  //   right.dispatch(step, Grid{n}, ...);
  //   left.submit();
  //   right.submit();
  //
  // The host must set the signal to zero, or work that is submitted and does not follow this packet
  // in its hardware queue; otherwise the queue stops there forever, for all producers of a shared
  // one. The signal must stay zero until this batch is complete; the Signal may be destroyed before
  // that. submit() of the batch that sets it makes it 1 first: to use it again, submit that batch
  // before this one. If the setter's queue fails, the signal never becomes zero, and waits for this
  // batch end by their deadline only. Streams (engine/stream) have events, which fail with their
  // queue. Throws Error for an empty Signal. A bare handle, of HSA or another library, must stay
  // valid until the batch is complete.
  void after(const Signal& signal) { after(signal.handle(), signal.lend()); }
  void after(hsa_signal_t signal) { after(signal, detail::SignalLoan()); }

  // Uses this signal for the next submission instead of one of the queue's. submit() sets it to 1.
  // The signal must have no other use until every waiting thread has returned from its wait and
  // times() has been read; the Signal may be destroyed before that. Throws Error for an empty
  // Signal, and if the batch is partly published, since its signal is already chosen. submit()
  // throws Error if an unfinished publication of this queue uses the signal. A bare handle must
  // stay valid as long as the signal may have no other use.
  void complete_with(const Signal& signal) { complete_with(signal.handle(), signal.lend()); }
  void complete_with(hsa_signal_t signal) { complete_with(signal, detail::SignalLoan()); }

  // Publishes the batch. An empty batch with a signal of complete_with() is published as a barrier
  // packet; for another empty batch, returns the completion of the last submission. Throws Error if
  // room did not become free in time or the queue has failed.
  // `site` is named in reports and errors about this submission (Queue::report()).
  Completion submit(CallSite site = CallSite::here());
  Completion submit(Deadline deadline, CallSite site = CallSite::here());
  // Does not wait, and returns refusals as values (tried.hpp):
  //   ring, timeline       no room
  //   signals              the same, or an unfinished publication uses the signal of
  //                        complete_with()
  //   too_long             longer than the ring less eight slots, so it cannot be published without
  //                        waiting; not for the rest of a batch: that is published as far as there
  //                        is room
  //   unavailable          other code has published to this borrowed queue
  //   argument             more timing signals than the queue has
  //   failed, device_lost  the queue takes no more work
  // and the code of HSA's status (code_of()) if HSA refuses to measure times. After a refusal the
  // batch is unchanged, except that a failed queue drops the rest of a partly published one.
  Tried<Completion> try_submit(CallSite site = CallSite::here());

  // Drops everything that is not submitted.
  void clear() noexcept;
  size_t size() const noexcept { return state_ ? state_->publication.packets.size() : 0; }

  // Fence plan of the last submission, one entry per packet, and the same in words. Valid until the
  // next submission.
  std::span<const PacketPlan> plan() {
    return state("BatchSubmitter::plan").publication.last_plan();
  }
  std::string explain();

 private:
  void after(hsa_signal_t signal, detail::SignalLoan loan);
  void complete_with(hsa_signal_t signal, detail::SignalLoan loan);
  // Throws Error, with `call` as the failed call, if the batch was moved from.
  detail::BatchState& state(const char* call) const {
    if (!state_) [[unlikely]]
      refuse_moved(call);
    return *state_;
  }
  [[noreturn]] static void refuse_moved(const char* call);

  std::unique_ptr<detail::BatchState> state_;
};

// Argument of Prepared::dispatch_each(): f(uint32_t i) noexcept -> std::tuple<Args...>. A function
// that may throw does not compile, because slots are taken before they are filled.
template <class F, class... Args>
concept ArgumentsOf = std::is_nothrow_invocable_r_v<std::tuple<Args...>, F&, uint32_t>;

// A kernel with its grid, prepared by a batch: the geometry is checked, packet and hidden arguments
// are computed. Thread safety and lifetime: as the batch.
template <class... Args>
class Prepared {
 public:
  // Appends one dispatch to the batch. Throws Error if no kernarg block became free in time, if
  // LocalBytes exceed the agent's group memory, or if Arguments do not fit (arguments.hpp).
  CommandRef dispatch(const Args&... args) const;
  // As BatchSubmitter::try_dispatch().
  Tried<CommandRef> try_dispatch(const Args&... args) const {
    batch_->make_room();
    return CommandRef::of(batch_->try_append("Prepared::try_dispatch", *kernel_, lds_bytes(),
                                             *shape_, places_, args...));
  }
  // Appends `count` dispatches with the arguments arguments_of(0) .. arguments_of(count - 1). For
  // Arguments, return a tuple of the bytes or pointers themselves, such as std::array, because
  // Arguments only refer to them.
  // arguments_of must not use the batch. Throws Error as dispatch(); the batch then holds the
  // dispatches before the failed one. With LocalBytes among the arguments, or Arguments, the cost
  // is that of `count` calls of dispatch(), because they are checked before a slot is taken.
  // Defined here, because clang 17 crashes on a constrained definition outside of the class.
  template <ArgumentsOf<Args...> F>
  void dispatch_each(uint32_t count, F&& arguments_of) const {
    // The copies below cost more than they save a few dispatches.
    constexpr uint32_t kWorthCopies = 4;
    if (detail::kCheckedByDispatch<Args...> || count < kWorthCopies) {
      // Arguments refer to what the function returned, which must live during the dispatch.
      using Given = std::conditional_t<detail::kAtRunTime<Args...>, decltype(arguments_of(0u)),
                                       std::tuple<Args...>>;
      for (uint32_t i = 0; i < count; ++i) {
        const Given arguments = arguments_of(i);
        std::apply([&](const auto&... args) { dispatch(args...); }, arguments);
      }
      return;
    }
    // Copies: otherwise the compiler must assume that stores to a packet change them.
    const detail::DispatchShape& shape = *shape_;
    const detail::ArgumentPlaces<Args...> places = places_;
    const aql::Packet64 packet = shape.packet;
    const uint32_t block_bytes = shape.block_bytes;
    for (uint32_t i = 0; i < count;) {
      batch_->make_room();
      const detail::DispatchSlots slots = batch_->take_slots(count - i, block_bytes);
      aql::Packet64* slot = slots.packets;
      std::byte* block = slots.blocks;
      for (const uint32_t end = i + slots.count; i < end; ++i, ++slot, block += block_bytes) {
        const std::tuple<Args...> arguments = arguments_of(i);
        batch_->publication.packets.fetch_slot(*slot);
        std::apply(
            [&](const Args&... args) {
              detail::write_dispatch(*slot, block, shape, packet, places, args...);
            },
            arguments);
      }
    }
  }

 private:
  friend class BatchSubmitter;
  Prepared(detail::BatchState& batch, const KernelInfo& kernel,
           const detail::DispatchShape& shape) noexcept
      : batch_(&batch), kernel_(&kernel), shape_(&shape), places_(kernel.arguments) {}
  uint32_t lds_bytes() const noexcept {
    return shape_->packet.group_segment_size() - kernel_->group_segment_size;
  }

  detail::BatchState* batch_;
  const KernelInfo* kernel_;
  const detail::DispatchShape* shape_;
  detail::ArgumentPlaces<Args...> places_;
};

template <class... Args>
CommandRef Prepared<Args...>::dispatch(const Args&... args) const {
  if constexpr (detail::kCheckedByDispatch<Args...>)
    detail::require_arguments(*kernel_, lds_bytes(), args...);
  batch_->make_room();
  return CommandRef(
      batch_->append(*shape_, places_, batch_->template take_block<Args...>(*shape_), args...));
}

}  // namespace uptempo
