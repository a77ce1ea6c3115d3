// BatchQueue: the implementation of Queue, and the steps of a submission. Private to
// engine/dispatch, engine/recording and their tests.
//
// A BatchQueue can use memory, signals and a ring without ROCr. Tests run the submit path that way
// against a packet processor in their own process.
#pragma once

#include <hsa/hsa.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include <uptempo/aql/writer.hpp>
#include <uptempo/dispatch/detail/publication.hpp>
#include <uptempo/dispatch/pools/lent_blocks.hpp>
#include <uptempo/dispatch/queue_resources.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo::detail {

class BatchQueue : public QueueResources {
 public:
  BatchQueue(const Agent& agent, const QueueOptions& options)
      : BatchQueue(agent, options, Parts{}) {}
  BatchQueue(const Agent& agent, const QueueOptions& options, Parts parts)
      : QueueResources(agent, options, std::move(parts)) {
    const auto end = [this] { end_publications(EndedBy::runtime); };
    listener_.start(Session::current(), {.at_end = end, .in_child = end});
  }
  // Without ROCr: the caller owns the signals, and there is no agent.
  BatchQueue(const Parts& parts, std::span<const hsa_signal_t> signals, const QueueOptions& options)
      : QueueResources(parts, signals, options) {}
  // Ends its publications.
  ~BatchQueue();

  // Throws the Error for a batch that was ended, or for a recording after the end of the Runtime.
  [[noreturn]] static void refuse_ended(const Publication& publication);

  // Lists the publication, or ends it if the Runtime has ended.
  void join(Publication& publication) noexcept;
  // Requires a publication with a queue.
  static void leave(Publication& publication) noexcept;

  // Makes room for one packet in a full batch. Throws Error if the batch has ended or is partly
  // published.
  static void make_room(Publication& publication);
  [[noreturn]] static void refuse_more(const Publication& publication, const char* asked);
  // Records that the next submission of this batch reads the caller's kernarg block. Throws Error
  // if the block is in use.
  void lend(std::span<const std::byte> block, Publication& publication) {
    lent_.lend(block, publication.lending, timeline_);
  }

  // Plans, reserves and publishes. Returns empty if the deadline passed before; the batch is then
  // unchanged. For an empty batch without a completion signal of the caller, returns the last
  // publication. Throws Error for failures that more time cannot resolve. A publication longer than
  // the ring is published in parts. If the deadline passes between them, the rest stays in
  // `publication`, and the next submit() continues with it.
  std::optional<uint64_t> submit(Publication& publication, Deadline deadline);
  // Drops what is not published.
  void drop(Publication& publication) noexcept;

  // The resource of which the last submit() found too little.
  ErrorCode last_refusal() const noexcept;
  // Throws the Error for a submit() that found too little of a resource.
  [[noreturn]] void throw_last_refusal(const Publication& publication) const;

 private:
  enum class Lack : uint8_t { none, ring, publications, signals, timing_signals };

  // Batches lose their packets and accept no more. A recording is no longer partly published; after
  // the end of a queue, another one may replay it. If the Runtime ends, calls nothing of HSA.
  void end_publications(EndedBy what) noexcept;
  void end(Publication& publication, EndedBy what) noexcept;
  [[noreturn]] void refuse_beside_others(const Publication& publication) const;
  [[noreturn]] void refuse_longer_than_ring(const Publication& publication) const;
  void check_own_signal(const Publication& publication) const;
  // The steps of submit(), in order. Nothing can fail or wait after reserve().
  void plan(Publication& publication, Deadline deadline);
  bool append_closing_packet(Publication& publication);
  // Packets of a part of a publication longer than the ring, without its barrier packet.
  uint64_t part_size() const noexcept { return std::max(ring_size() / 2, 2u) - 1; }
  uint64_t parts_before_last(const Publication& publication) const noexcept {
    const uint64_t left = publication.packets.size() - publication.published;
    if (left <= longest_run()) return 0;
    return (left - longest_run() + part_size() - 1) / part_size();
  }
  bool reserve(Publication& publication, aql::Slots& slots, bool is_last, Deadline deadline);
  bool reserve_when_free(Publication& publication, aql::Slots& slots, bool is_last,
                         Deadline deadline);
  bool await_signals(uint32_t timing, bool own_signal, Deadline deadline);
  void publish(Publication& publication, const aql::Slots& slots, bool is_last) noexcept;
  void begin(Publication& publication, bool is_last) noexcept;
  void take_timing_signals(Publication& publication) noexcept;
  void restore(Publication& publication) noexcept;
  void retain(Publication& publication) noexcept;
  void retain_borrowed(Publication& publication) noexcept;
  void clear(Publication& publication) noexcept;

  LentBlocks lent_;
  Lack lack_ = Lack::none;  // of the last submit() that was refused
  aql::PublishResult ring_refusal_;
  Publication* publications_ = nullptr;  // see join()
  SessionListener listener_;             // last: it uses the others
};

}  // namespace uptempo::detail
