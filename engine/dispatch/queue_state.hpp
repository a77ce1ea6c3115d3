// What lies behind a Queue, and the way of one publication through it. Private to engine/dispatch and its tests.
//
// A QueueState can be made over memory, signals and a ring that have nothing to do with ROCr: that is how the submit path is tested
// against a packet processor in the test's own process.
#pragma once

#include <hsa/hsa.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "aql/writer.hpp"
#include "engine/dispatch/fence_plan.hpp"
#include "engine/dispatch/handle_check.hpp"
#include "engine/dispatch/kernarg_pool.hpp"
#include "engine/dispatch/publication.hpp"
#include "engine/dispatch/queue.hpp"
#include "engine/dispatch/signal_pool.hpp"
#include "engine/dispatch/timeline.hpp"
#include "engine/memory/buffer.hpp"
#include "engine/program/arguments.hpp"
#include "engine/runtime/session.hpp"

namespace uptempo::detail {

class CommonQueue;

// The same, or Error for what no queue can be made with.
QueueOptions checked(QueueOptions options);

class QueueState {
 public:
  struct Parts {
    hsa_queue_t* queue = nullptr;
    aql::Producers producers = aql::Producers::exclusive;
    std::span<std::byte> kernargs{};
    const std::atomic<hsa_status_t>* foreign_error = nullptr;  // of a borrowed queue
    std::shared_ptr<CommonQueue> common{};                     // of shared producers
  };

  QueueState(const Agent& agent, const QueueOptions& options);
  QueueState(const Agent& agent, const QueueOptions& options, Parts parts);
  // Without ROCr: signals are the caller's, and no agent is known.
  QueueState(Parts parts, std::span<const hsa_signal_t> signals, const QueueOptions& options);
  ~QueueState();
  QueueState(const QueueState&) = delete;
  QueueState& operator=(const QueueState&) = delete;

  // A kernarg block; waits until the deadline for one to become free. Throws Error.
  std::byte* take_kernargs(KernargPool::Cursor& cursor, uint32_t size_bytes, Deadline deadline);
  // The same without waiting; null if there is none.
  std::byte* try_take_kernargs(KernargPool::Cursor& cursor, uint32_t size_bytes) noexcept;

  // Gives a batch whose store is full room for a packet more: the free slots behind its last packet, if the queue can be lent to it (exclusive
  // producers, and no other batch lies in it), or memory. Throws Error if the batch is partly out.
  void make_room(Publication& publication);
  [[noreturn]] static void refuse_more(const Publication& publication, const char* asked);
  // A kernarg block of the caller's is read by the next submission of that batch. Throws Error if handle checks find it in use.
  void lend(std::span<const std::byte> block, const Publication& publication) {
    lent_.lend(block, &publication, timeline_);
  }

  // Plans, admits and publishes. Empty if the deadline passed before the first packet was out, which leaves no trace; throws Error for
  // what time does not mend. After a publication longer than the ring was cut off by the deadline, which throws as well, the
  // rest stays in `publication` and the next submit goes on with it.
  std::optional<uint64_t> submit(Publication& publication, Deadline deadline);
  // Gives up an unsubmitted or half-submitted batch.
  void drop(Publication& publication) noexcept;

  void reclaim(uint32_t limit) noexcept;

  [[noreturn]] void throw_exhausted(const std::string& resource, const std::string& size,
                                    const std::string& in_use) const;
  // Why the last submit() came back empty.
  [[noreturn]] void throw_last_refusal() const;

  Pressure pressure() noexcept;  // any thread

  const Agent* agent() const noexcept { return agent_ ? &*agent_ : nullptr; }
  const QueueFacts& facts() const noexcept { return facts_; }
  Timeline& timeline() noexcept { return timeline_; }
  const KernargPool& kernargs() const noexcept { return kernargs_; }
  const SignalPool& signals() const noexcept { return signals_; }
  const aql::AqlQueueWriter& writer() const noexcept { return *writer_; }
  hsa_queue_t* handle() const noexcept { return writer_->queue(); }

 private:
  struct Retained {  // what a publication holds until it is reclaimed
    KernargPool::Slabs slabs;
    bool pooled_signal = false;
    hsa_signal_t completion{0};
    std::vector<hsa_signal_t> timing_signals;
  };
  enum class Refusal : uint8_t { none, ring, publications, signals, timing_signals };

  void connect(const Parts& parts);
  bool wait_for_oldest(Deadline deadline);
  void check_failed() {
    if (timeline_.failed()) throw_failed();
  }
  [[noreturn]] void throw_failed() const;
  [[noreturn]] static void refuse_behind(const Publication& first, const Publication& second);
  [[noreturn]] void refuse_longer_than_ring(size_t packets) const;
  void check_own_signal(const Publication& publication) const;
  bool admit_at_once(Publication& publication) noexcept;
  void begin(Publication& publication, hsa_signal_t completion) noexcept;
  bool admit(Publication& publication, Deadline deadline);
  // With several producers an occupancy may exceed the ring: its indices are read one after the other.
  void note_ring(uint64_t occupancy) noexcept {
    ring_level_.set(static_cast<uint32_t>(std::min<uint64_t>(occupancy, writer_->ring_size())));
  }
  bool append_closing_packet(Publication& publication);
  static void take_back(Publication& publication, bool closed) noexcept;
  bool is_in_place(const Publication& publication) const noexcept;
  void publish_in_place(Publication& publication) noexcept;
  void retain(Publication& publication) noexcept;
  aql::PublishResult write(Publication& publication, uint64_t from, Deadline deadline);
  void evict(Publication& tenant);
  void close(Publication& publication) noexcept;
  void enable_profiling();
  void note_timing(const Publication& publication);
  void forget(Publication& publication) noexcept;
  void vacate(Publication& publication) noexcept;
  void drain() noexcept;

  std::optional<Agent> agent_;
  QueueOptions options_;
  // Members are destroyed in reverse order: queue first, then its signals and memory.
  KernargBuffer kernarg_memory_;
  SignalPool signals_;
  Timeline& timeline_;
  KernargPool kernargs_;
  Gauge ring_level_, publications_level_;
  std::vector<Retained> retained_;
  [[no_unique_address]] LentBlocksIfChecked lent_;
  Owned queue_;
  std::shared_ptr<CommonQueue> common_;
  Owned session_end_;
  std::shared_ptr<Session> session_;
  uint64_t fault_listener_ = 0;
  std::optional<aql::AqlQueueWriter> writer_;
  QueueFacts facts_;
  bool profiling_ = false;
  Publication* tenant_ = nullptr;  // the one batch whose packets lie in the ring, unpublished
  const Publication* partly_out_ =
      nullptr;  // its last packet, which carries the signal, is not in the ring yet
  Refusal refusal_ = Refusal::none;
  aql::PublishResult ring_refusal_;
};

}  // namespace uptempo::detail
