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
// Scopes: dispatches acquire and release at agent scope. Kernels of one agent need no more. Neither
// do kernargs: they are in fine-grained host memory, which gfx9 does not cache in L2, so only
// first-level caches may be stale. A stream's first launch after the host has waited for it, or
// after it has waited for anything other than a queue of this agent, acquires at system scope. An
// event therefore names the agent whose packets made all writes that it covers (Event::writer_),
// also if it is complete: the wait for it, however it is made or left out, then tells the
// difference. An event recorded after such a wait and before the launch that acquires covers other
// agents' writes. DESIGN.md, "Several GPUs", has the sources of these rules. Every launch acquires
// at system scope where L2 may hold old kernargs (kernargs_go_stale_in_l2()): on other targets,
// and for kernargs in device memory of gfx9 before gfx942. Packets with a completion signal release
// at system scope.
//
// Thread safety: every function may be called from any thread. A lock is held while packets are
// written, never during a wait.
// Lifetime: as for Queue.
#pragma once

#include <hsa/hsa.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "aql/packet.hpp"
#include "engine/dispatch/detail/dispatch_shape.hpp"
#include "engine/dispatch/pools/spill_pool.hpp"
#include "engine/dispatch/queue_resources.hpp"
#include "engine/stream/event/event.hpp"
#include "engine/stream/queue/cu_mask.hpp"
#include "engine/stream/queue/detail/launch_reservation.hpp"
#include "engine/stream/queue/signal_waits.hpp"
#include "engine/stream/queue/stream_priority.hpp"

namespace uptempo::detail {

struct StreamQueueOptions {
  QueueOptions queue{};
  StreamPriority priority = StreamPriority::normal;
  std::vector<uint32_t> cu_mask{};  // cu_mask.hpp; empty: all
  uint32_t epoch_packets = 128;     // launches after which one carries a completion signal
  bool system_acquires = false;     // for every launch, on any target
  std::chrono::nanoseconds patience = std::chrono::seconds(30);
  uint64_t spill_bytes = 32 << 20;  // limit for kernarg blocks larger than a slab
};

// Returns the launches after which one carries a completion signal: at most a quarter of the ring,
// so that an epoch leaves room for a marker.
inline uint32_t epoch_packets(const QueueOptions& queue, uint32_t asked) noexcept {
  return std::clamp(asked, 1u, std::max(1u, queue.packets / 4));
}

// Owns those blocks. A base class, so that it is destroyed after the queue whose packets read them.
struct StreamSpills {
  explicit StreamSpills(uint64_t limit_bytes) noexcept : spills_(limit_bytes) {}
  SpillPool spills_;
};

class StreamQueue final : private StreamSpills, public QueueResources {
 public:
  // Creates an HSA queue. Throws Error.
  StreamQueue(const Agent& agent, const StreamQueueOptions& options);
  // Without ROCr; see queue_resources.hpp.
  StreamQueue(const Parts& parts, std::span<const hsa_signal_t> signals,
              const StreamQueueOptions& options);

  const CuMask& cu_mask() const noexcept { return cu_mask_; }

  using Reservation = LaunchReservation;
  // Throws Error for a geometry that kernel or agent cannot run, if no room becomes available in
  // time, and if the queue has failed.
  Reservation reserve_launch(const KernelInfo& kernel, const Grid& grid) {
    return reserve_launch(kernel, grid, true);
  }
  // Like reserve_launch(), but the caller provides a ready block; Reservation::block is null.
  Reservation reserve_launch_at(const KernelInfo& kernel, const Grid& grid) {
    return reserve_launch(kernel, grid, false);
  }
  // Allocates a block after all. Returns false if none is free; the caller must then give up the
  // reservation.
  bool try_take_block(Reservation& reserved) noexcept {
    return try_take(reserved.shape->block_bytes, reserved.block);
  }
  // Publishes `packet`, which is complete except for its header and completion signal.
  void launch(Reservation&& reserved, StreamPosition& position, aql::Packet64& packet) noexcept;

  // Returns an event for all work up to the position. Throws Error like reserve_launch().
  Event event_for(StreamPosition& position);
  // Like event_for(), and records the completion time. If the position was already complete,
  // returns an event without source and does not set `time`. Requires a position that is not empty.
  Event timed_event_for(StreamPosition& position, const std::shared_ptr<EventTime>& time);
  // Returns an event for all packets so far. Empty if nothing is unfinished.
  Event event_for_all();
  // Makes later packets of the stream wait for the events. Throws Error like reserve_launch().
  void after(StreamPosition& position, std::span<const Event> events);
  // Makes later packets of the stream wait until a caller's signal is zero. The returned event
  // completes at that point. Keeps the loan until then.
  Event after(StreamPosition& position, hsa_signal_t signal, SignalLoan loan);
  // Decrements a caller's signal after all packets up to the position. Keeps the loan until then.
  // Throws Error like reserve_launch().
  void signal(StreamPosition& position, hsa_signal_t signal, SignalLoan loan);

  // Orders later packets of the stream after another position in this queue.
  void come_after(StreamPosition& position, const StreamPosition& other) noexcept {
    leave(position);
    inherit(position, other.packet, other.epoch);
    position.acquires_system = position.acquires_system || other.acquires_system;
  }
  // Records that an event of this or another queue was found complete, so no wait is needed.
  void note_finished(const Event& event, StreamPosition& position) const noexcept {
    if (is_outside(event)) position.acquires_system = true;
  }
  // An event for a position without unfinished work.
  Event finished_event(const StreamPosition& position) const noexcept {
    return Event({}, writer_of(position));
  }

  // True if the queue may have unfinished work.
  bool busy() noexcept {
    return open_packets_.load(std::memory_order_relaxed) != 0 ||
           !timeline_.is_done(timeline_.last_begun());
  }
  bool failed() noexcept { return timeline_.failed(); }
  // Publishes a marker for the open epoch. Returns false if there is no room for one now.
  bool close_open() noexcept;
  // Call after the last packet. Blocks until all closed epochs are complete, or lost at the
  // deadline, which is also the destructor's.
  void finish(Deadline deadline) noexcept;

  // Sets the function that is called, without the lock, while other queues have no signal to lend:
  // it ends the epochs that may hold their signals. Call before using the queue.
  void end_loans_by(std::function<void()> callback) { end_loans_ = std::move(callback); }

 private:
  Reservation reserve_launch(const KernelInfo& kernel, const Grid& grid, bool with_block);
  bool try_reserve_launch(const DispatchShape& shape, bool takes_block, std::byte*& block);
  // Number of free slots that a packet of the open epoch requires. Only a marker frees the slots
  // that the epoch holds, so one slot is kept for it.
  uint64_t slots_for_open(bool holds) const noexcept { return holds || open_holds_ ? 2 : 1; }
  bool has_slots(uint64_t count) noexcept {
    aql::Slots slots{count};
    return writer_->try_reserve(slots);
  }
  // Waits until the oldest epoch has ended, and reclaims. Returns false at the deadline.
  bool try_wait_for_room(std::unique_lock<std::mutex>& lock, Waiter& waiter);
  // The same, but throws Error at the deadline. It names the resource.
  void wait_for_room(std::unique_lock<std::mutex>& lock, Waiter& waiter);
  // The same for a dispatch, which may instead lack memory for a block larger than a slab.
  void wait_for_launch(std::unique_lock<std::mutex>& lock, const KernelInfo& kernel,
                       uint32_t block_bytes, Waiter& waiter);
  bool is_large(uint32_t block_bytes) const noexcept {
    return block_bytes > kernargs_.slab_bytes();
  }
  // Returns false if blocks in use must be returned first.
  bool add_spill(std::unique_lock<std::mutex>& lock, const KernelInfo& kernel,
                 uint32_t block_bytes);
  bool try_take(uint32_t block_bytes, std::byte*& block) noexcept {
    block = kernarg_cursor_.fits(block_bytes) ? kernarg_cursor_.take(block_bytes)
                                              : take_elsewhere(block_bytes);
    return block != nullptr;
  }
  std::byte* take_elsewhere(uint32_t block_bytes) noexcept;
  uint64_t open_epoch() const noexcept { return timeline_.last_begun() + 1; }
  bool needs_barrier(const StreamPosition& position) noexcept;
  bool can_close() noexcept;
  [[noreturn]] void throw_short() const;
  void await_closable(std::unique_lock<std::mutex>& lock);
  // Returns the packet's index plus one.
  uint64_t publish(aql::Packet64& packet, aql::HeaderFlags flags, bool closes,
                   const CallSite& site = {}) noexcept;
  void mark() noexcept;
  void follow(StreamPosition& position, uint64_t packet, uint64_t epoch) noexcept;
  // Orders the stream after that packet, in addition, and extends its events to that epoch.
  void inherit(StreamPosition& position, uint64_t packet, uint64_t epoch) noexcept;
  Event event_at(uint64_t epoch, const StreamPosition& position) noexcept {
    return Event(completion_of(timeline_, epoch), writer_of(position));
  }
  // True if a packet in the queue already orders later packets of the stream after the event.
  bool is_implied(const Event& event, StreamPosition& position) noexcept;
  void await_slot(std::unique_lock<std::mutex>& lock);
  void put_wait(StreamPosition& position, WaitSet& waits);
  // True if the event covers writes that packets of this agent did not make. Only a system-scope
  // acquire makes such writes visible.
  bool is_outside(const Event& event) const noexcept {
    return event.writer_.handle != writer().handle && event.writer_.handle != Event::kNobody.handle;
  }
  // Null if waits of the stream that no launch has acquired yet cover other writers.
  hsa_agent_t writer_of(const StreamPosition& position) const noexcept {
    return position.acquires_system ? hsa_agent_t{} : writer();
  }
  // All queues without an agent share one value.
  hsa_agent_t writer() const noexcept {
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
  CuMask cu_mask_{};
  const bool acquires_system_always_;
  std::function<void()> end_loans_;
  std::mutex mutex_;
  DispatchShapes shapes_;
  KernargPool::Cursor kernarg_cursor_;  // of the open epoch
  SignalWaits waits_;
  std::vector<SignalLoan> loans_;  // of callers' signals, for the open epoch
  // Per unfinished epoch, by place: index plus one of the launch that closed it, or of the gate (a
  // wait for a caller's signal). 0: a marker, which no packet needs to follow.
  std::vector<uint64_t> closers_;
  uint64_t open_bytes_ = 0;
  bool open_holds_ = false;    // the open epoch has kernels that may read their packets
  uint64_t last_barrier_ = 0;  // last packet with a barrier bit, index plus one
};

}  // namespace uptempo::detail
