// What lies behind a Queue, and the way of one publication through it. Private to engine/dispatch and its tests.
//
// A QueueState can be made over memory, signals and a ring that have nothing to do with ROCr: that is how the submit path is tested
// against a packet processor in the test's own process.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "aql/writer.hpp"
#include "engine/dispatch/handle_check.hpp"
#include "engine/dispatch/publication.hpp"
#include "engine/dispatch/queue_core.hpp"

namespace uptempo::detail {

class QueueState : public QueueCore {
 public:
  QueueState(const Agent& agent, const QueueOptions& options) : QueueState(agent, options, Parts{}) {}
  QueueState(const Agent& agent, const QueueOptions& options, Parts parts)
      : QueueCore(agent, options, std::move(parts)) {}
  // Without ROCr: signals are the caller's, and no agent is known.
  QueueState(Parts parts, std::span<const hsa_signal_t> signals, const QueueOptions& options)
      : QueueCore(std::move(parts), signals, options) {}

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

  // Why the last submit() came back empty.
  [[noreturn]] void throw_last_refusal() const;

 private:
  enum class Refusal : uint8_t { none, ring, publications, signals, timing_signals };

  [[noreturn]] static void refuse_behind(const Publication& first, const Publication& second);
  [[noreturn]] void refuse_longer_than_ring(size_t packets) const;
  void check_own_signal(const Publication& publication) const;
  bool admit_at_once(Publication& publication) noexcept;
  void begin(Publication& publication, hsa_signal_t completion) noexcept;
  bool admit(Publication& publication, Deadline deadline);
  bool append_closing_packet(Publication& publication);
  static void take_back(Publication& publication, bool closed) noexcept;
  bool is_in_place(const Publication& publication) const noexcept;
  void publish_in_place(Publication& publication) noexcept;
  void retain(Publication& publication) noexcept;
  aql::PublishResult write(Publication& publication, uint64_t from, Deadline deadline);
  void evict(Publication& tenant);
  void close(Publication& publication) noexcept;
  void forget(Publication& publication) noexcept;
  void vacate(Publication& publication) noexcept;

  [[no_unique_address]] LentBlocksIfChecked lent_;
  Publication* tenant_ = nullptr;  // the one batch whose packets lie in the ring, unpublished
  const Publication* partly_out_ =
      nullptr;  // its last packet, which carries the signal, is not in the ring yet
  Refusal refusal_ = Refusal::none;
  aql::PublishResult ring_refusal_;
};

}  // namespace uptempo::detail
