// What every queue of this library has around its ring, whatever is published through it: writer, timeline, signals, kernarg slabs, and what ends with them.
// Private to engine/dispatch, engine/stream and their tests.
//
// BatchQueue publishes batches over it (batch_queue.hpp), StreamQueue the packets of streams (engine/stream/stream_queue.hpp).
//
// Thread safety: one owner at a time, but for pressure() and what Timeline allows any thread.
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

#include "aql/writer.hpp"
#include "engine/dispatch/pools/kernarg_pool.hpp"
#include "engine/dispatch/queue.hpp"
#include "engine/dispatch/pools/signal_pool.hpp"
#include "engine/completion/timeline.hpp"
#include "engine/completion/timeline_watch.hpp"
#include "engine/memory/buffer.hpp"
#include "engine/program/arguments.hpp"
#include "engine/runtime/session.hpp"

namespace uptempo::detail {

class SharedHsaQueue;

// The same, or Error for what no queue can be made with.
QueueOptions checked(QueueOptions options);

// Adds to the process's counters what has been published.
struct Published {
  uint64_t packets, completion_signals, doorbells, batches;
};
void count_published(const Published& published, const aql::HeaderCosts& costs) noexcept;

class QueueResources {
 public:
  struct Parts {
    hsa_queue_t* queue = nullptr;
    aql::Producers producers = aql::Producers::exclusive;
    std::span<std::byte> kernargs{};
    const std::atomic<hsa_status_t>* foreign_error = nullptr;  // of a borrowed queue
    std::shared_ptr<SharedHsaQueue> common{};                     // of shared producers
  };

  QueueResources(const QueueResources&) = delete;
  QueueResources& operator=(const QueueResources&) = delete;

  // A kernarg block; waits until the deadline for one to become free. Throws Error.
  std::byte* take_kernargs(KernargPool::Cursor& cursor, uint32_t size_bytes, Deadline deadline);
  // The same without waiting; null if there is none.
  std::byte* try_take_kernargs(KernargPool::Cursor& cursor, uint32_t size_bytes) noexcept;

  void reclaim(uint32_t limit) noexcept;

  [[noreturn]] void throw_exhausted(const std::string& resource, const std::string& size,
                                    const std::string& in_use) const;

  Pressure pressure() noexcept;  // any thread

  const Agent* agent() const noexcept { return agent_ ? &*agent_ : nullptr; }
  const QueueFacts& facts() const noexcept { return facts_; }
  Timeline& timeline() noexcept { return timeline_; }
  const KernargPool& kernargs() const noexcept { return kernargs_; }
  const SignalPool& signals() const noexcept { return signals_; }
  const aql::AqlQueueWriter& writer() const noexcept { return *writer_; }
  hsa_queue_t* handle() const noexcept { return writer_->queue(); }
  uint32_t ring_size() const noexcept { return ring_size_; }  // 0: there is no queue
  // False after the end of the Runtime: no signal, queue or memory is left.
  bool usable() const noexcept { return watch_.usable(); }

 protected:
  struct Retained {  // what a publication holds until it is reclaimed
    KernargPool::Slabs slabs;
    bool pooled_signal = false;
    hsa_signal_t completion{0};
    std::vector<hsa_signal_t> timing_signals;
    std::vector<SignalLoan> loans;  // signals of others that its packets wait for
  };
  static constexpr uint32_t all = UINT32_MAX;

  QueueResources(const Agent& agent, const QueueOptions& options, Parts parts);
  // Without ROCr: signals are the caller's, and no agent is known.
  QueueResources(Parts parts, std::span<const hsa_signal_t> signals, const QueueOptions& options);
  // Without a queue: it has failed from the beginning.
  explicit QueueResources(Failure failure);
  ~QueueResources();

  bool wait_for_oldest(Deadline deadline);
  void check_failed() {
    if (timeline_.failed()) throw_failed();
  }
  [[noreturn]] void throw_failed() const;
  // With several producers an occupancy may exceed the ring: its indices are read one after the other.
  void note_ring(uint64_t occupancy) noexcept {
    ring_level_.set(static_cast<uint32_t>(std::min<uint64_t>(occupancy, writer_->ring_size())));
  }
  void enable_profiling();
  // Of the packet that completed the signal last; times were on.
  PacketTime time_of(hsa_signal_t signal) const;
  // The last begun publication is timed, and retained.
  void note_timing(uint64_t value);
  Retained& retained(uint64_t value) noexcept { return retained_[timeline_.place(value)]; }
  // Returns when everything begun is complete or lost, which it is at the deadline.
  void drain(Deadline deadline) noexcept;

  std::optional<Agent> agent_;
  QueueOptions options_;
  // Members are destroyed in reverse order: queue first, then its signals and memory.
  KernargBuffer kernarg_memory_;
  SignalPool signals_;
  Timeline& timeline_;
  KernargPool kernargs_;
  // Published, and covered by no publication yet: of streams, whose owner writes it under a lock.
  std::atomic<uint32_t> open_packets_{0};
  Gauge ring_level_, publications_level_;
  std::vector<Retained> retained_;
  Owned queue_;
  std::shared_ptr<SharedHsaQueue> common_;
  TimelineWatch watch_;
  std::optional<aql::AqlQueueWriter> writer_;
  QueueFacts facts_;
  uint32_t ring_size_ = 0;
  bool profiling_ = false;

 private:
  void connect(const Parts& parts);
};

}  // namespace uptempo::detail
