// What lies behind a Queue, and the way of one publication through it. Private to engine/dispatch and its tests.
//
// A BatchQueue can be made over memory, signals and a ring that have nothing to do with ROCr: that is how the submit path is tested
// against a packet processor in the test's own process.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "aql/writer.hpp"
#include "engine/dispatch/pools/lent_blocks.hpp"
#include "engine/dispatch/publication.hpp"
#include "engine/dispatch/queue_resources.hpp"
#include "engine/runtime/session_end.hpp"

namespace uptempo::detail {

class BatchQueue;

// A batch, or a recording whose replay is partly out: it has packets for a queue, or may get some,
// so it is told when that queue ends. Only set-up touches the list of guests: a dispatch costs the
// same with and without it.
struct QueueGuest {
  BatchQueue* state = nullptr;  // of a batch whose queue has ended: BatchQueue::ended(); of a recording: null
  Publication* publication = nullptr;

 private:
  friend class BatchQueue;
  QueueGuest* next_ = nullptr;
  QueueGuest** link_ = nullptr;  // what points to this one; null: in no list
};

class BatchQueue : public QueueResources {
 public:
  BatchQueue(const Agent& agent, const QueueOptions& options) : BatchQueue(agent, options, Parts{}) {}
  BatchQueue(const Agent& agent, const QueueOptions& options, Parts parts)
      : QueueResources(agent, options, std::move(parts)) {
    session_end_.start([this] { end_guests(); });
  }
  // Without ROCr: signals are the caller's, and no agent is known.
  BatchQueue(Parts parts, std::span<const hsa_signal_t> signals, const QueueOptions& options)
      : QueueResources(std::move(parts), signals, options) {}
  // Gives up what its guests have not submitted, as their own destruction does, and parts from
  // them.
  ~BatchQueue();

  // The queue of every batch that has lost its own: it refuses what it is asked. Never destroyed.
  // Any thread.
  static BatchQueue& ended();
  // Why a publication takes no more packets.
  [[noreturn]] static void refuse_ended(const Publication& publication);

  void join(QueueGuest& guest) noexcept;
  static void leave(QueueGuest& guest) noexcept;

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
  // Gives up an unsubmitted or half-submitted batch. Until the deadline it waits for the slot of
  // the packet that closes a half-submitted one.
  void drop(Publication& publication, Deadline deadline = Deadline::never()) noexcept;

  // Why the last submit() came back empty.
  [[noreturn]] void throw_last_refusal() const;

 private:
  enum class Refusal : uint8_t { none, ring, publications, signals, timing_signals };

  struct Ended {};
  explicit BatchQueue(Ended);

  // The Runtime goes, and with it the memory that guests write to.
  void end_guests() noexcept;
  [[noreturn]] void refuse_failed(const Publication& publication) const;
  [[noreturn]] static void refuse_behind(const Publication& first, const Publication& second);
  [[noreturn]] void refuse_longer_than_ring(size_t packets) const;
  void check_own_signal(const Publication& publication) const;
  struct SignalNeeds {
    uint32_t timing;      // event-less signals for timing
    uint32_t event_less;  // those and, without interrupt signals, the completion signal
  };
  // The steps of submit(), in order.
  void plan(Publication& publication, Deadline deadline);
  bool admit(Publication& publication, Deadline deadline);
  void publish_in_place(Publication& publication) noexcept;
  aql::PublishResult publish_by_copy(Publication& publication, Deadline deadline);
  uint64_t settle(Publication& publication) noexcept;
  std::optional<uint64_t> settle_refused(Publication& publication, const aql::PublishResult& result);

  // Parts of plan() and admit().
  bool append_closing_packet(Publication& publication);
  bool admits_at_once(const Publication& publication) noexcept;
  SignalNeeds signal_needs(const Publication& publication) const;
  bool await_signals(const Publication& publication, const SignalNeeds& needs, Deadline deadline);
  bool await_ring(uint64_t packets, Deadline deadline);
  void take_timing_signals(Publication& publication, uint32_t count) noexcept;
  void begin(Publication& publication, hsa_signal_t completion) noexcept;
  // Parts of settling.
  void give_back_admission(Publication& publication) noexcept;
  static void take_back(Publication& publication) noexcept;
  bool is_in_place(const Publication& publication) const noexcept;
  void retain(Publication& publication) noexcept;
  void evict(Publication& tenant);
  void close(Publication& publication, Deadline deadline) noexcept;
  void forget(Publication& publication) noexcept;
  void vacate(Publication& publication) noexcept;

  [[no_unique_address]] LentBlocksIfChecked lent_;
  Publication* tenant_ = nullptr;  // the one batch whose packets lie in the ring, unpublished
  const Publication* partly_out_ =
      nullptr;  // its last packet, which carries the signal, is not in the ring yet
  Refusal refusal_ = Refusal::none;
  aql::PublishResult ring_refusal_;
  QueueGuest* guests_ = nullptr;
  SessionEnd session_end_;  // last: it uses the others
};

}  // namespace uptempo::detail
