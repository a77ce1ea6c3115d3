// BatchQueue: the implementation of Queue, and the steps of a submission. Private to
// engine/dispatch, engine/recording and their tests.
//
// A BatchQueue can use memory, signals and a ring without ROCr. Tests run the submit path that way
// against a packet processor in their own process.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "aql/writer.hpp"
#include "engine/dispatch/detail/publication.hpp"
#include "engine/dispatch/pools/lent_blocks.hpp"
#include "engine/dispatch/queue_resources.hpp"
#include "engine/runtime/session_end.hpp"

namespace uptempo::detail {

class BatchQueue : public QueueResources {
 public:
  BatchQueue(const Agent& agent, const QueueOptions& options)
      : BatchQueue(agent, options, Parts{}) {}
  BatchQueue(const Agent& agent, const QueueOptions& options, Parts parts)
      : QueueResources(agent, options, std::move(parts)) {
    session_end_.start([this] { end_attachments(); }, [this] { end_attachments(); });
  }
  // Without ROCr: the caller owns the signals, and there is no agent.
  BatchQueue(const Parts& parts, std::span<const hsa_signal_t> signals, const QueueOptions& options)
      : QueueResources(parts, signals, options) {}
  // Drops the unsubmitted packets of its attachments, as their destructors do, and removes the
  // attachments.
  ~BatchQueue();

  // The queue of every batch whose own queue has ended: it refuses every request. Never destroyed.
  // Any thread.
  static BatchQueue& ended();
  // Throws the Error for a publication that accepts no more packets.
  [[noreturn]] static void refuse_ended(const Publication& publication);

  void join(QueueAttachment& attachment) noexcept;
  static void leave(QueueAttachment& attachment) noexcept;

  // Makes room for one packet in a full batch: in the free slots after its last packet, if the
  // batch may use the ring (exclusive producers, and no other batch's packets are in it), otherwise
  // in memory. Throws Error if the batch is partly published.
  void make_room(Publication& publication);
  [[noreturn]] static void refuse_more(const Publication& publication, const char* asked);
  // Records that the next submission of this batch reads the caller's kernarg block. Throws Error
  // if the block is in use.
  void lend(std::span<const std::byte> block, Publication& publication) {
    lent_.lend(block, publication.lending, timeline_);
  }

  // Plans, admits and publishes. Returns empty if the deadline passed before the first packet was
  // published; the batch is then unchanged. For an empty batch without a completion signal of the
  // caller, returns the last publication. Throws Error for failures that more time cannot
  // resolve. If the deadline cuts off a publication longer than the ring, submit() throws Error,
  // the rest stays in `publication`, and the next submit() continues with it.
  std::optional<uint64_t> submit(Publication& publication, Deadline deadline);
  // Drops an unsubmitted or partly published batch. For a partly published one, waits until the
  // deadline for the slot of the packet that closes it. At the deadline, the queue fails: nothing
  // tells when the published packets are complete.
  void drop(Publication& publication, Deadline deadline) noexcept;
  // The same, until QueueOptions::drain_timeout.
  void drop(Publication& publication) noexcept {
    drop(publication,
         publication.published == 0 ? Deadline::now() : Deadline::after(options_.drain_timeout));
  }

  // Throws the Error for the last submit() that returned empty.
  [[noreturn]] void throw_last_refusal() const;

 private:
  enum class Refusal : uint8_t { none, ring, publications, signals, timing_signals };

  struct Ended {};
  explicit BatchQueue(Ended);

  // The Runtime ends, and with it the memory that attachments write to.
  void end_attachments() noexcept;
  [[noreturn]] void refuse_failed(const Publication& publication) const;
  [[noreturn]] static void refuse_behind(const Publication& first, const Publication& second);
  [[noreturn]] void refuse_beside_others() const;
  [[noreturn]] void refuse_longer_than_ring(size_t packets) const;
  void check_own_signal(const Publication& publication) const;
  struct SignalNeeds {
    uint32_t timing;      // event-less signals for timing
    uint32_t event_less;  // timing signals; without interrupt signals, also the completion signal
  };
  // The steps of submit(), in order.
  void plan(Publication& publication, Deadline deadline);
  bool admit(Publication& publication, Deadline deadline);
  bool admit_when_free(Publication& publication, Deadline deadline);
  void record_flight(const Publication& publication, uint64_t first) noexcept;
  void place_flight(uint64_t first, const aql::PublishResult& result, uint64_t published) noexcept;
  void publish_in_place(Publication& publication) noexcept;
  void publish_copies(Publication& publication) noexcept;
  aql::PublishResult publish_by_copy(Publication& publication, Deadline deadline);
  aql::PublishResult publish_in_portions(Publication& publication, Deadline deadline);
  uint64_t settle(Publication& publication) noexcept;
  std::optional<uint64_t> settle_refused(Publication& publication,
                                         const aql::PublishResult& result);

  // Parts of plan() and admit().
  bool append_closing_packet(Publication& publication);
  bool admits_at_once(const Publication& publication) noexcept;
  SignalNeeds signal_needs(const Publication& publication) const;
  bool await_signals(const Publication& publication, const SignalNeeds& needs, Deadline deadline);
  bool await_ring(uint64_t packets, Deadline deadline);
  void take_timing_signals(Publication& publication, uint32_t count) noexcept;
  void begin(Publication& publication, hsa_signal_t completion) noexcept;
  // Parts of settle() and drop().
  void give_back_admission(Publication& publication) noexcept;
  static void take_back(Publication& publication) noexcept;
  bool is_in_place(const Publication& publication) const noexcept;
  bool has_proven_room(const Publication& publication) const noexcept;
  void retain(Publication& publication) noexcept;
  void retain_borrowed(Publication& publication) noexcept;
  void evict(Publication& ring_batch);
  void close(Publication& publication, Deadline deadline) noexcept;
  void forget(Publication& publication) noexcept;
  void vacate(Publication& publication) noexcept;

  LentBlocks lent_;
  Publication* ring_batch_ = nullptr;  // the only batch with unpublished packets in the ring
  const Publication* partly_out_ =
      nullptr;  // its last packet, which carries the signal, is not published yet
  Refusal refusal_ = Refusal::none;
  aql::PublishResult ring_refusal_;
  QueueAttachment* attachments_ = nullptr;
  SessionEnd session_end_;  // last: it uses the others
};

}  // namespace uptempo::detail
