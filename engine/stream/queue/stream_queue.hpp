// A hardware queue that streams share. Private to engine/stream and its tests.
//
// Packets are published at once and one by one, with no completion signal of their own. They belong to the queue's open *epoch*, which ends with the next packet that
// carries a signal: a marker, that is a barrier-AND packet, where somebody wants to know, or now and then a launch, so that kernarg slabs come back. An epoch is
// a value of the queue's timeline, and kernarg blocks and borrowed signals are held until it is complete.
//
// Barrier bits. Packets of different streams may overlap, those of one stream may not. So a packet carries its barrier bit if its own stream's last packet in this
// queue is unfinished, and no packet since then had its barrier bit set (such a one is launched when all before it are complete, and later ones after it: HSA Platform System
// Architecture 1.2, 2.9.1). A packet with a completion signal always carries it (invariant 5).
//
// Scopes. Dispatches acquire and release at agent scope, which is what kernels of one agent need of each other, and what kernargs need: they lie in
// fine-grained host memory, which gfx9 does not keep in L2, so that only the first-level caches may be stale. A stream's first launch after the host has waited for it, or after
// it has waited for what is not a queue of this agent, acquires at system scope; on other targets every launch does. Packets with a completion
// signal release at system scope.
//
// Thread safety: every function from any thread; a lock is held while packets are written, and never while something is waited for. Lifetime: as a Queue.
#pragma once

#include <hsa/hsa.h>

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
#include "engine/dispatch/dispatch_shape.hpp"
#include "engine/dispatch/queue_resources.hpp"
#include "engine/dispatch/pools/spill_pool.hpp"
#include "engine/stream/event/event.hpp"
#include "engine/stream/queue/marker_times.hpp"
#include "engine/stream/queue/signal_source.hpp"
#include "engine/stream/queue/signal_waits.hpp"

namespace uptempo {

// Of a stream's packets beside those of others; the driver's three levels (hsa_amd_queue_set_priority).
enum class StreamPriority : uint8_t { low, normal, high };

namespace detail {

// The last packet of a stream in its queue.
struct StreamPosition {
  uint64_t packet = 0;  // its index plus one; 0: nothing unfinished
  uint64_t epoch = 0;
  bool acquires_system = true;  // the next launch

  bool empty() const noexcept { return packet == 0; }
};

struct StreamQueueOptions {
  QueueOptions queue{};
  StreamPriority priority = StreamPriority::normal;
  std::vector<uint32_t> cu_mask{};  // bit i of word i / 32: compute unit i may be used; empty: all
  uint32_t epoch_packets = 128;     // launches after which one carries a completion signal
  bool system_acquires = false;     // of every launch, whatever the target
  std::chrono::nanoseconds patience = std::chrono::seconds(30);
  uint64_t spill_bytes = 32 << 20;  // of kernarg blocks larger than a slab
};

// Where those lie. A base, so that it goes after the queue whose packets read them.
struct StreamSpills {
  explicit StreamSpills(uint64_t limit_bytes) noexcept : spills_(limit_bytes) {}
  SpillPool spills_;
};

class StreamQueue final : private StreamSpills, public QueueResources, public SignalSource {
 public:
  // Makes an HSA queue. Throws Error.
  StreamQueue(const Agent& agent, const StreamQueueOptions& options);
  // Without ROCr; see queue_resources.hpp.
  StreamQueue(Parts parts, std::span<const hsa_signal_t> signals, const StreamQueueOptions& options);

  // A dispatch on its way: the queue is locked, there is room for its packet, and its block is taken (null where the kernel takes no arguments).
  struct Turn {
    std::unique_lock<std::mutex> lock;
    const DispatchShape* shape;
    std::byte* block;
  };
  // Throws Error for a geometry that kernel or agent cannot run, when room does not come in time, and if the queue has failed.
  template <class... Args>
  Turn take_turn(const KernelInfo& kernel, const Grid& grid) {
    return take_turn_if(kernel, grid, takes_block<Args...>);
  }
  // The same with a block of the caller's, which lies ready: Turn::block is null.
  Turn take_turn_at(const KernelInfo& kernel, const Grid& grid) {
    return take_turn_if(kernel, grid, [](const DispatchShape&) { return false; });
  }
  // A block for it after all. False if there is none at once: then the turn is to be given up.
  bool try_take_block(Turn& turn) noexcept { return try_take(turn.shape->block_bytes, turn.block); }
  // Publishes. `packet` is whole but for its header and its completion signal.
  void launch(Turn&& turn, StreamPosition& position, aql::Packet64& packet) noexcept;

  // What is complete when everything up to the position is. Throws Error as take_turn().
  Event event_for(StreamPosition& position);
  // The same with the time at which it was reached. Empty, and `time` is not set, where it was reached already; the position is not empty.
  Event timed_event_for(StreamPosition& position, const std::shared_ptr<EventTime>& time);
  // Everything put into the queue so far. Empty where nothing is unfinished.
  Event event_for_all();
  // Sees to it that later packets of the stream wait for the events. Throws Error as take_turn().
  void wait_for(StreamPosition& position, std::span<const Event> events);
  // The same for a signal of somebody else's: until it is zero. The event is complete when it was.
  Event wait_for(StreamPosition& position, hsa_signal_t signal);

  // Later packets of the stream come after the position of another one in this queue.
  void come_after(StreamPosition& position, const StreamPosition& other) noexcept {
    inherit(position, other.packet, other.epoch);
    position.acquires_system = position.acquires_system || other.acquires_system;
  }
  // An event of this or another queue was found complete: nothing need be waited for.
  void note_finished(const Event& event, StreamPosition& position) const noexcept {
    if (event.source_ != nullptr && is_outside(event)) position.acquires_system = true;
  }

  // Whether something put into the queue may be unfinished.
  bool busy() noexcept {
    return open_packets_.load(std::memory_order_relaxed) != 0 || !timeline_.is_done(timeline_.last_begun());
  }
  bool failed() noexcept { return timeline_.failed(); }
  // Puts a marker behind what is open, if there is room for one now. False if there is none.
  bool close_open() noexcept;
  // Whether an epoch that packets were put into is complete. Never of one whose packets are lost.
  bool is_complete(uint64_t epoch) noexcept {
    return epoch <= timeline_.last_begun() && timeline_.is_done(epoch);
  }
  // Nothing more will come. Returns when everything with a marker behind it is complete or lost, which it is at the deadline.
  void finish(Deadline deadline) noexcept;

  // Called, without the lock, when signals are short: whoever borrowed some is asked to give them back. Set before the queue is used.
  void ask_when_short(std::function<void()> ask) { ask_ = std::move(ask); }

  Timeline& source_timeline() noexcept override { return timeline_; }
  std::optional<Borrowed> borrow(uint64_t value) override;
  void give_back_loans() noexcept override;

 private:
  template <class TakesBlock>
  Turn take_turn_if(const KernelInfo& kernel, const Grid& grid, TakesBlock&& takes_block);
  bool has_turn(uint32_t block_bytes, bool takes_block, std::byte*& block);
  void wait_for_room(std::unique_lock<std::mutex>& lock, Deadline deadline);
  // The same for a dispatch, which may lack memory for a block larger than a slab instead.
  void wait_for_turn(std::unique_lock<std::mutex>& lock, const KernelInfo& kernel, uint32_t block_bytes,
                     Deadline deadline);
  bool is_large(uint32_t block_bytes) const noexcept { return block_bytes > kernargs_.slab_bytes(); }
  // False if blocks in use have to come back first.
  bool add_spill(std::unique_lock<std::mutex>& lock, const KernelInfo& kernel, uint32_t block_bytes);
  bool try_take(uint32_t block_bytes, std::byte*& block) noexcept {
    block =
        kernarg_cursor_.fits(block_bytes) ? kernarg_cursor_.take(block_bytes) : take_elsewhere(block_bytes);
    return block != nullptr;
  }
  std::byte* take_elsewhere(uint32_t block_bytes) noexcept;
  uint64_t open_epoch() const noexcept { return timeline_.last_begun() + 1; }
  bool needs_barrier(const StreamPosition& position) noexcept;
  bool can_close() noexcept;
  [[noreturn]] void throw_short() const;
  void await_closable(std::unique_lock<std::mutex>& lock);
  // Returns its index plus one.
  uint64_t publish(aql::Packet64& packet, aql::HeaderFlags flags, bool closes) noexcept;
  void mark() noexcept;
  void follow(StreamPosition& position, uint64_t packet, uint64_t epoch) noexcept;
  // The stream comes after that packet, and its events cover that epoch, as well.
  void inherit(StreamPosition& position, uint64_t packet, uint64_t epoch) noexcept;
  // Passes on what the stream has waited for and no launch has acquired yet.
  Event event_at(uint64_t epoch, const StreamPosition& position) noexcept {
    return {*this, Completion(timeline_, epoch), position.acquires_system ? hsa_agent_t{} : writer()};
  }
  // Something in the queue makes later packets of the stream come after the event already.
  bool is_implied(const Event& event, StreamPosition& position) noexcept;
  void put_wait(StreamPosition& position, WaitSet& waits);
  // Whether something else than this agent's packets wrote what the event covers: only an acquire at system scope sees that.
  bool is_outside(const Event& event) const noexcept { return event.writer_.handle != writer().handle; }
  // Queues without an agent are of the same.
  hsa_agent_t writer() const noexcept { return agent_ ? agent_->handle() : hsa_agent_t{UINT64_MAX}; }
  // Complete, and known to be: the host may have written since.
  bool is_over(const StreamPosition& position) const noexcept { return position.empty() || timeline_.is_known(position.epoch); }

  const StreamQueueOptions stream_options_;
  const bool acquires_system_always_;
  std::function<void()> ask_;
  std::mutex mutex_;
  DispatchShapes shapes_;
  KernargPool::Cursor kernarg_cursor_;  // of the open epoch
  SignalWaits waits_;
  // Of each unfinished epoch, by place: the launch that closed it, or the gate (a wait for somebody else's signal), index plus one. 0: a marker, behind which nothing is to come.
  std::vector<uint64_t> closers_;
  MarkerTimes marker_times_;
  uint64_t open_bytes_ = 0;
  bool is_stopped_ = false;    // after a failure
  uint64_t last_barrier_ = 0;  // packet with barrier bit, index plus one
};

// Where a stream's work stands, for those that must follow it.
struct Standing {
  StreamQueue* queue = nullptr;
  StreamPosition position;
  bool behind_host = false;
};

template <class TakesBlock>
StreamQueue::Turn StreamQueue::take_turn_if(const KernelInfo& kernel, const Grid& grid,
                                            TakesBlock&& takes_block) {
  Turn turn{.lock = std::unique_lock(mutex_), .shape = &shapes_.of(kernel, grid), .block = nullptr};
  if (has_turn(turn.shape->block_bytes, takes_block(*turn.shape), turn.block)) [[likely]]
    return turn;
  const Deadline deadline = Deadline::after(stream_options_.patience);
  do {
    wait_for_turn(turn.lock, kernel, takes_block(*turn.shape) ? turn.shape->block_bytes : 0, deadline);
    turn.shape = &shapes_.of(kernel, grid);  // another stream may have used its place
  } while (!has_turn(turn.shape->block_bytes, takes_block(*turn.shape), turn.block));
  return turn;
}

// What a packet of that epoch, and those before it, may use.
struct QueueUse {
  StreamQueue* queue = nullptr;
  uint64_t epoch = 0;
  bool is_over() const noexcept { return queue->is_complete(epoch); }
};

}  // namespace detail
}  // namespace uptempo
