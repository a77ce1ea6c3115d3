// QueueResources: writer, timeline, signals and kernarg slabs around a ring, with their destruction
// order. Base of BatchQueue (batch_queue.hpp), which publishes batches, and of StreamQueue
// (engine/stream/queue/stream_queue.hpp), which publishes the packets of streams. Private to
// engine/dispatch, engine/stream and their tests.
//
// Thread safety: one owner at a time, except pressure() and the functions that Timeline allows any
// thread.
#pragma once

#include <hsa/hsa.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <uptempo/aql/writer.hpp>
#include <uptempo/completion/timeline.hpp>
#include <uptempo/completion/timeline_watch.hpp>
#include <uptempo/completion/waiter.hpp>
#include <uptempo/dispatch/flight/flight_log.hpp>
#include <uptempo/dispatch/flight/flight_recorder.hpp>
#include <uptempo/dispatch/hardware_queue.hpp>
#include <uptempo/dispatch/pools/gauge.hpp>
#include <uptempo/dispatch/pools/kernarg_pool.hpp>
#include <uptempo/dispatch/pools/signal_pool.hpp>
#include <uptempo/dispatch/queue.hpp>
#include <uptempo/memory/kernarg_memory.hpp>
#include <uptempo/program/argument_layout.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/ring_access.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo::detail {

// Returns the options. Throws Error for options that no queue can have.
QueueOptions checked(QueueOptions options);

// Adds published packets to the process's counters.
struct Published {
  uint64_t packets, completion_signals, doorbells, batches;
};
inline void count_published(const Published& published, const aql::HeaderCosts& costs) noexcept {
  CounterBlock& counters = counters_of_this_thread();
  count(counters.packets, published.packets);
  count(counters.barrier_bits, costs.barriers);
  count(counters.system_acquires, costs.system_acquires);
  count(counters.system_releases, costs.system_releases);
  count(counters.completion_signals, published.completion_signals);
  count(counters.doorbells, published.doorbells);
  count(counters.batches, published.batches);
}

class QueueResources {
 public:
  struct Parts {
    hsa_queue_t* queue = nullptr;
    std::span<std::byte> kernargs{};
    const std::atomic<hsa_status_t>* foreign_error = nullptr;  // of a borrowed queue
    std::shared_ptr<SharedHsaQueue> common{};                  // of shared producers
    DeviceWrites writes{};         // without ROCr: `kernargs` behaves like device memory
    bool submits_packets = false;  // each packet is a submission; otherwise each publication
  };

  QueueResources(const QueueResources&) = delete;
  QueueResources& operator=(const QueueResources&) = delete;

  // Returns a kernarg block. Waits until the deadline for a free one. Throws Error.
  std::byte* take_kernargs(KernargPool::Cursor& cursor, uint32_t size_bytes, Deadline deadline);
  // As take_kernargs(), without waiting. Returns null if none is free.
  std::byte* try_take_kernargs(KernargPool::Cursor& cursor, uint32_t size_bytes) noexcept;

  void reclaim(uint32_t limit) noexcept {
    if (timeline_.oldest_is_finished()) reclaim_finished(limit);
  }
  // The same, and returns signals of reclaimed publications that packets of other queues have read.
  void reclaim_signals(uint32_t limit) noexcept {
    reclaim(limit);
    timeline_.return_loans([this](hsa_signal_t signal) noexcept { signals_.give_back(signal); });
  }

  // Throws Error for a kernarg block larger than a slab.
  void require_block_size(uint32_t size_bytes, const char* call) const;
  [[noreturn]] void throw_exhausted(ErrorCode resource_code, const std::string& resource,
                                    const std::string& size, const std::string& in_use) const;

  Pressure pressure() noexcept;  // any thread
  // Requires usable(). Throws Error.
  std::string describe() const;
  // The last submissions; any thread. Requires usable().
  FlightLog flight_log(FlightScope scope) const;
  // "queue 3 of gfx90a", for messages.
  std::string flight_name() const;
  // "; first unfinished: ...", for an error about a wait that ran out of time. Empty if there is no
  // unfinished work.
  std::string first_unfinished() const;

  const Agent* agent() const noexcept { return agent_ ? &*agent_ : nullptr; }
  const QueueFacts& facts() const noexcept { return facts_; }
  Timeline& timeline() noexcept { return timeline_; }
  const KernargPool& kernargs() const noexcept { return kernargs_; }
  const KernargPlace& place() const noexcept { return place_; }
  const SignalPool& signals() const noexcept { return signals_; }
  const aql::AqlQueueWriter& writer() const noexcept { return *writer_; }
  hsa_queue_t* handle() const noexcept { return writer_->queue(); }
  uint32_t ring_size() const noexcept { return ring_size_; }
  // The most packets that are certain to find room together (writer.hpp).
  uint32_t longest_run() const noexcept { return writer_->longest_run(); }
  // False after the end of the Runtime: its signals, queue and memory are gone.
  bool usable() const noexcept { return watch_.usable(); }

 protected:
  struct Retained {  // resources of a publication until it is reclaimed
    KernargPool::Slabs slabs;
    hsa_signal_t completion{0};
    std::vector<hsa_signal_t> timing_signals;
    std::vector<SignalLoan> loans;  // of callers' signals
  };
  static constexpr uint32_t kAll = UINT32_MAX;
  // Number of oldest publications that each one reclaims. More than one, so that reclaiming is
  // faster than submitting. Constant, so that a submission costs the same however many are
  // finished.
  static constexpr uint32_t kReclaimInPassing = 2;

  QueueResources(const Agent& agent, const QueueOptions& options, Parts parts);
  void note_cu_mask() noexcept { queue_.note_cu_mask(); }  // before setting one
  // Without ROCr: the caller owns the signals, and there is no agent.
  QueueResources(const Parts& parts, std::span<const hsa_signal_t> signals,
                 const QueueOptions& options);
  ~QueueResources();

  // Waits for the oldest publication, and reclaims. Returns false at the deadline, and if there is
  // no publication to wait for. Throws Error if the queue has failed.
  bool wait_for_oldest(Waiter& waiter);
  void check_failed() {
    if (timeline_.failed()) throw_failed();
  }
  [[noreturn]] void throw_failed() const;
  // With several producers the occupancy may exceed the ring size, because its two indices are read
  // one after the other.
  void note_ring(uint64_t occupancy) noexcept {
    ring_level_.set(static_cast<uint32_t>(std::min<uint64_t>(occupancy, writer_->ring_size())));
  }
  // Call before the first publication that holds slots. Throws std::bad_alloc, and Error for a ring
  // without a slot beside the held one.
  void make_holds();
  // For a borrowed queue. Queues of the library are profiled from their creation on.
  void require_profiling();
  // Times of the last packet that completed the signal; zeros if the device has stored none.
  PacketTime time_of(hsa_signal_t signal) const;
  // Begins the publication that this signal completes.
  uint64_t begin(hsa_signal_t completion, SignalOwner owner = SignalOwner::queue) noexcept {
    const uint64_t value = timeline_.begin(completion, owner);
    publications_level_.set(timeline_.pending());
    retained(value).completion = completion;
    return value;
  }
  // Marks the last begun publication, which is retained, as timed.
  void note_timing(uint64_t value);
  Retained& retained(uint64_t value) noexcept { return retained_[timeline_.place(value)]; }
  // When the waits of the destructor end.
  Deadline end_deadline() const noexcept {
    return ends_by_ ? *ends_by_ : Deadline::after(options_.drain_timeout);
  }
  // Returns when every begun publication is complete, or at the deadline, when unfinished ones are
  // lost.
  void drain(Deadline deadline) noexcept;
  // Ends the use of a queue whose work is unfinished at a deadline. Stops the HSA queue, unless it
  // is borrowed or shared, and fails the timeline with `why`. If that loses work, counts it and
  // says "<queue> <what>: <why>".
  void give_up(const char* why, const char* what) noexcept;

  std::optional<Agent> agent_;
  QueueOptions options_;
  // Destruction in reverse order: the queue first, then its signals and memory.
  const KernargPlace place_;
  KernargMemory kernarg_memory_;
  DeviceWrites device_writes_;
  SignalPool signals_;
  KernargPool kernargs_;
  Timeline& timeline_;  // after what may fail: no destructor gives it back
  // Published packets that no publication covers yet. Streams only; the owner writes it under a
  // lock.
  std::atomic<uint32_t> open_packets_{0};
  Gauge ring_level_, publications_level_;
  std::vector<Retained> retained_;
  HardwareQueue queue_;
  std::shared_ptr<SharedHsaQueue> common_;
  std::unique_ptr<aql::SlotHolds> holds_;  // null before the first hold, and for shared producers
  TimelineWatch watch_;
  RingAccessChoice access_;
  std::optional<aql::AqlQueueWriter> writer_;
  QueueFacts facts_;
  uint32_t ring_size_ = 0;
  bool profiling_ = false;
  std::optional<Deadline> ends_by_;  // of several queues that end together
  FlightRecorder flight_;

 private:
  void reclaim_finished(uint32_t limit) noexcept;
  void connect(const Parts& parts);
  RingAccessChoice choose_access(const Parts& parts) const;
};

}  // namespace uptempo::detail
