// StreamQueue: a hardware queue shared by streams. Private to engine/stream and its tests.
//
// Epochs: packets are published at once, one by one, without completion signals of their own. They
// belong to the queue's open *epoch*, which ends with the next packet that carries a signal. That
// packet is a marker (a barrier-AND packet) if a caller needs completion, or from time to time a
// launch, so that kernarg slabs are returned. An epoch is a value of the queue's timeline. Kernarg
// blocks and borrowed signals are held until it is complete.
//
// Barrier bits: packets of different streams may overlap; packets of one stream may not. So a
// packet has its barrier bit set if its stream's last packet in this queue is unfinished and no
// packet since then had its barrier bit set. (A packet with the barrier bit launches after all
// earlier packets are complete, and later packets launch after it: HSA Platform System Architecture
// 1.2, 2.9.1.) A packet with a completion signal always has it (invariant 5).
//
// Scopes: dispatches acquire and release at agent scope, packets with a completion signal release
// at system scope. A stream's first launch after the host has waited for it, or after it has waited
// for anything other than a queue of this agent, acquires at system scope. An event therefore names
// the agent whose packets made all writes that it covers (Event::written_by_), also if it is
// complete, because the wait for it may be left out. An event recorded after such a wait and before
// the launch that acquires covers other agents' writes. Every launch acquires at system scope where
// L2 may hold old kernargs (kernargs_go_stale_in_l2()). DESIGN.md has the reasons and sources.
//
// Waits for events of other queues are barrier-AND packets on their signals, up to five each. After
// one, packets need not wait for the same events, or for earlier ones of the same queues. If one of
// these queues fails first, this queue fails with it, because the packet would wait forever.
//
// Thread safety: every function may be called from any thread. A lock is held while packets are
// written, never during a wait.
// Lifetime: as for Queue.
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <uptempo/aql/packet.hpp>
#include <uptempo/completion/waiter.hpp>
#include <uptempo/dispatch/detail/dispatch_shape.hpp>
#include <uptempo/dispatch/queue_resources.hpp>
#include <uptempo/stream/queue/detail/launch_reservation.hpp>
#include <uptempo/stream/queue/event.hpp>

namespace uptempo::detail {

struct StreamQueueOptions {
  QueueOptions queue{};
  BorrowedQueue borrowed{};  // without a queue: the library creates one
  hsa_amd_queue_priority_t priority = HSA_AMD_QUEUE_PRIORITY_NORMAL;
  std::vector<uint32_t> cu_mask{};  // empty: all
  uint32_t epoch_packets = 128;     // launches after which one carries a completion signal
  bool system_acquires = false;     // for every launch, on any target
  std::chrono::nanoseconds patience = std::chrono::seconds(30);
};

// Returns the launches after which one carries a completion signal: at most a quarter of the ring,
// so that an epoch leaves room for a marker.
inline uint32_t epoch_packets(const QueueOptions& queue, uint32_t asked) noexcept {
  return std::clamp(asked, 1u, std::max(1u, queue.packets / 4));
}

// Sets the queue's mask of compute units, and returns a description of the one in use. Empty:
// leaves it as it is. Throws Error if ROCr refuses the mask, if no compute unit is left, and if
// ROCr does not tell what HSA_CU_MASK leaves.
std::string set_cu_mask(hsa_queue_t* queue, const Agent& agent, const std::vector<uint32_t>& asked);

class StreamQueue final : public QueueResources {
 public:
  // Creates an HSA queue. Throws Error.
  StreamQueue(const Agent& agent, const StreamQueueOptions& options);
  // Without ROCr; see queue_resources.hpp.
  StreamQueue(const Parts& parts, std::span<const hsa_signal_t> signals,
              const StreamQueueOptions& options);
  ~StreamQueue() {
    // Packets of an epoch that is still open may use callers' signals.
    for (SignalLoan& loan : loans_) loan.leave_to_session();
  }

  // Description of the mask in use.
  const std::string& cu_mask() const noexcept { return cu_mask_; }

  // `latest`: the end of waits for room and for signals to borrow, which patience ends earlier.
  // Deadline::now(): a call that lacks some throws Error at once.

  // Reserves a launch and, with `takes_block`, memory for its arguments; otherwise the caller has
  // a block. Throws Error for a geometry that kernel or agent cannot run, for arguments larger than
  // a slab, if no room becomes available in time, and if the queue has failed.
  LaunchReservation reserve(const KernelInfo& kernel, const LaunchGrid& on, bool takes_block,
                            Deadline latest = Deadline::never());
  // Allocates a block after all. Returns false if none is free; the caller must then give up the
  // reservation.
  bool try_take_block(LaunchReservation& reserved) noexcept {
    const uint32_t bytes = reserved.shape->block_bytes;
    reserved.block = kernarg_cursor_.fits(bytes) ? kernarg_cursor_.take(bytes)
                                                 : try_take_kernargs(kernarg_cursor_, bytes);
    return reserved.block != nullptr;
  }
  // Publishes `packet`, which is complete except for its header and completion signal.
  void launch(LaunchReservation&& reserved, StreamPosition& position,
              aql::Packet64& packet) noexcept;

  // Returns an event for all work up to the position. Throws Error like reserve().
  Event event_for(StreamPosition& position, Deadline latest = Deadline::never());
  // Like event_for(), and records the completion time. If the position was already complete,
  // returns an event without source and does not set `time`. Requires a position that is not empty.
  Event timed_event_for(StreamPosition& position, const std::shared_ptr<EventTime>& time);
  // Returns an event for all packets so far. Empty if nothing is unfinished.
  Event event_for_all();
  // Makes later packets of the stream wait for the events. Throws Error like reserve().
  void after(StreamPosition& position, std::span<const Event> events,
             Deadline latest = Deadline::never());
  // Makes later packets of the stream wait until a caller's signal is zero. The returned event
  // completes at that point. Keeps the loan until then.
  Event after(StreamPosition& position, hsa_signal_t signal, SignalLoan loan);
  // Decrements a caller's signal after all packets up to the position. Keeps the loan until then.
  // Throws Error like reserve().
  void signal(StreamPosition& position, hsa_signal_t signal, SignalLoan loan);

  // Orders later packets of the stream after another position in this queue.
  void come_after(StreamPosition& position, const StreamPosition& other) noexcept {
    leave(position);
    inherit(position, other);
    position.acquires_system = position.acquires_system || other.acquires_system;
  }
  // Records that an event of this or another queue was found complete, so no wait is needed.
  void note_finished(const Event& event, StreamPosition& position) const noexcept {
    if (is_outside(event)) position.acquires_system = true;
  }
  // An event for a position without unfinished work.
  Event finished_event(const StreamPosition& position) const noexcept {
    return Event({}, written_by(position));
  }

  // True if the queue may have unfinished work.
  bool busy() noexcept {
    return open_packets_.load(std::memory_order_relaxed) != 0 ||
           !timeline_.is_done(timeline_.last_begun());
  }
  bool failed() noexcept { return timeline_.failed(); }
  // Streams::publish_own().
  void publish_own(const std::function<void(uint64_t room)>& publish);
  // Publishes a marker for the open epoch. Returns false if there is no room for one now.
  bool close_open() noexcept;
  // Call after the last packet. Blocks until all closed epochs are complete, or lost at the
  // deadline, which is also the destructor's.
  void finish(Deadline deadline) noexcept;

  // Sets the function that is called, without the lock, while other queues have no signal to lend:
  // it ends the epochs that may hold their signals. Call before using the queue.
  void end_loans_by(std::function<void()> callback) { end_loans_ = std::move(callback); }

 private:
  // Throws Error if the queue has failed, or if other code publishes to a borrowed one.
  void check_usable() {
    check_failed();
    if (is_borrowed_ && writer_->has_intruder()) [[unlikely]]
      refuse_beside_others("Stream", writer_->next_index(), writer_->visible_write_index());
  }
  bool try_reserve(LaunchReservation& reserved, bool takes_block);
  // Reserves the slot of a packet of the open epoch. Only a marker frees the slots that the epoch
  // holds, so a second slot is kept for it.
  bool try_reserve(aql::Slots& slots, bool holds) noexcept {
    slots.count = holds || open_holds_ ? 2 : 1;
    return writer_->try_reserve(slots);
  }
  // True if a packet can end the epoch: there is a completion signal for it.
  bool has_completion() noexcept;
  bool try_reserve_closer(aql::Slots& slots) noexcept {
    slots.count = 1;
    return has_completion() && writer_->try_reserve(slots);
  }
  // The same for a packet without arguments, which closes the epoch or not. Waits, and may release
  // and retake the lock. Throws Error.
  aql::Slots reserve_slots(std::unique_lock<std::mutex>& lock, bool closes,
                           Deadline latest = Deadline::never());
  Waiter waiter_until(Deadline latest) const noexcept {
    return Waiter(stream_options_.patience, latest);
  }
  // Waits until the oldest epoch has ended, and reclaims. Throws Error at the deadline, which names
  // the resource.
  void wait_for_room(std::unique_lock<std::mutex>& lock, Waiter& waiter);
  uint64_t open_epoch() const noexcept { return timeline_.last_begun() + 1; }
  bool needs_barrier(const StreamPosition& position) noexcept;
  [[noreturn]] void throw_short() const;
  // Publishes a packet in the first of the reserved slots, to which it moves the position.
  void publish(const aql::Slots& slots, aql::Packet64& packet, aql::HeaderFlags flags, bool closes,
               StreamPosition& position, const CallSite& site = {}) noexcept;
  void mark(const aql::Slots& slots) noexcept;
  // Orders the stream after that packet, in addition, and extends its events to that epoch.
  static void inherit(StreamPosition& position, const StreamPosition& other) noexcept {
    position.packet = std::max(position.packet, other.packet);
    position.epoch = std::max(position.epoch, other.epoch);
  }
  Event event_at(uint64_t epoch, const StreamPosition& position) noexcept {
    return Event(completion_of(timeline_, epoch), written_by(position));
  }
  // True if a packet in the queue already orders later packets of the stream after the event.
  bool is_implied(const Event& event, StreamPosition& position) noexcept;
  struct WaitSet;  // the signals that one packet waits for
  void put_wait(StreamPosition& position, WaitSet& set, Deadline latest);
  struct Waited {
    Completion event;   // the last of its queue
    StreamPosition by;  // the packet that waits for it
  };
  std::vector<Waited>::iterator find_waited(const Completion& event) noexcept;
  // True if the event covers writes that packets of this agent did not make. Only a system-scope
  // acquire makes such writes visible.
  bool is_outside(const Event& event) const noexcept {
    return event.written_by_.handle != own_agent().handle &&
           event.written_by_.handle != Event::kNobody.handle;
  }
  // Null if waits of the stream that no launch has acquired yet cover other writers.
  hsa_agent_t written_by(const StreamPosition& position) const noexcept {
    return position.acquires_system ? hsa_agent_t{} : own_agent();
  }
  // All queues without an agent share one value.
  hsa_agent_t own_agent() const noexcept {
    return agent_ ? agent_->handle() : hsa_agent_t{UINT64_MAX};
  }
  // True if the host knows that the position is complete, and may have written since.
  bool is_over(const StreamPosition& position) const noexcept {
    return position.empty() || timeline_.is_known(position.epoch);
  }
  // Call before the position moves to a packet that does not acquire. The next launch could no
  // longer see from it that the host may have written.
  void leave(StreamPosition& position) const noexcept {
    if (is_over(position)) position.acquires_system = true;
  }

  const StreamQueueOptions stream_options_;
  const bool is_borrowed_ = stream_options_.borrowed.queue != nullptr;
  std::string cu_mask_ = "all";
  const bool acquires_system_always_;
  std::function<void()> end_loans_;
  std::mutex mutex_;
  DispatchShapes shapes_;
  KernargPool::Cursor kernarg_cursor_;  // of the open epoch
  std::vector<Waited> waited_;          // one entry per queue
  std::vector<SignalLoan> loans_;       // of callers' signals, for the open epoch
  // Per unfinished epoch, by place: index plus one of the launch that closed it, or of the gate (a
  // wait for a caller's signal). 0: a marker, which no packet needs to follow.
  std::vector<uint64_t> closers_;
  uint64_t open_bytes_ = 0;
  bool open_holds_ = false;    // the open epoch has kernels that may read their packets
  uint64_t last_barrier_ = 0;  // last packet with a barrier bit, index plus one
};

}  // namespace uptempo::detail
