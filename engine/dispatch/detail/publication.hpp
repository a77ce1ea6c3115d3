// Publication: one batch between its submitter and the ring. Private: the templates of
// BatchSubmitter and the declarations of a packet need it.
//
// Thread safety: thread-compatible.
#pragma once

#include <hsa/hsa.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <uptempo/aql/packet.hpp>
#include <uptempo/aql/writer.hpp>
#include <uptempo/dispatch/detail/packet_store.hpp>
#include <uptempo/dispatch/flight/detail/flight_headers.hpp>
#include <uptempo/dispatch/pools/detail/kernarg_cursor.hpp>
#include <uptempo/dispatch/queue.hpp>
#include <uptempo/fences/declarations.hpp>
#include <uptempo/fences/fence_plan.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/signal.hpp>

namespace uptempo {

class Agent;

namespace detail {

class BatchQueue;
class FencePlanner;
struct Publication;

// The last packet of a batch, for declarations about it.
struct PacketRef {
  Publication* publication;
  uint32_t packet;

  // Throws Error if it is no longer the last one of its batch, and if the batch is partly
  // published: its plan is final.
  Declarations& declarations() const;
  std::vector<AccessRange>& accesses() const noexcept;
};

// Throws Error for a packet of another batch.
void require_same(const PacketRef& own, const PacketRef& other);

// The object that was destroyed before a batch, and its kernarg memory with it.
enum class EndedBy : uint8_t { nothing, queue, runtime };

// One batch on its way to the ring. The submitter keeps it between submissions, so that its vectors
// keep their capacity.
//
// A queue lists the publications that have or may get packets for it, and ends them when it ends
// (BatchQueue::join). Only set-up changes that list: dispatches do not pay for it.
//
// For a packet without declarations, only the packet itself is stored: the plan gives all such
// packets the same header, except the first and the last one of a batch.
struct Publication {
  // `agent`: the target of the plans. Null: they are correct on every target.
  explicit Publication(FencePolicy policy, bool is_kept = false, const Agent* agent = nullptr);
  Publication(const Publication&) = delete;
  Publication& operator=(const Publication&) = delete;
  // Drops what its queue has not published, and leaves the queue.
  ~Publication();

  PacketStore packets;
  // By packet number; packets past the end have none. Empty: no packet has any.
  std::vector<Declarations> declared;
  std::vector<AccessRange> accesses;
  std::vector<hsa_signal_t> timing_signals;  // of the first packets; 0: none
  KernargCursor kernargs;
  hsa_signal_t own_signal{0};     // the caller's completion signal; 0: one of the pool
  std::vector<SignalLoan> loans;  // of the caller's signals
  uint64_t lending = 0;           // of the caller's kernarg blocks (lent_blocks.hpp); 0: none
  Timing timing = Timing::none;
  aql::Chunking chunking;
  // It has, or had in an earlier submission, a kernel that may read its packet: its slots are in
  // use until it is complete (invariant 4). Never reset, because dispatches do not check it.
  bool holds_slots = false;
  // Kernarg blocks are in device memory, which L2 caches.
  bool kernargs_go_stale_in_l2 = false;  // agent.hpp
  const bool kept;  // a recording's: keeps its plan and outlives its submissions
  // A batch's, until queue or Runtime end. A recording's, while a replay is partly published.
  BatchQueue* queue = nullptr;
  EndedBy ended_by = EndedBy::nothing;  // of a batch without a queue

  // The last part that was published, and the number of packets in all parts: while the
  // publication is longer than the ring and partly published.
  uint64_t value = 0;
  uint64_t published = 0;
  hsa_signal_t completion{0};
  // the last packet is the engine's own barrier, for this submission
  bool has_closing_packet = false;
  CallSite site;  // of the submission

  // It uses signals or kernarg blocks of the caller.
  bool borrows() const noexcept { return lending != 0 || !loans.empty(); }
  // No packet has declarations and none is timed.
  bool is_plain() const noexcept { return declared.empty() && timing == Timing::none; }
  PacketRef ref_of_last() noexcept { return {this, static_cast<uint32_t>(packets.size() - 1)}; }
  // Declarations of a packet, usually the last one, to change them.
  Declarations& declarations_of(uint32_t packet) {
    if (kept) replan();
    if (declared.size() == packet) return declared.emplace_back();
    if (declared.size() < packet) declared.resize(packet + 1);
    return declared[packet];
  }
  Declarations find_declared(uint64_t packet) const noexcept {
    return packet < declared.size() ? declared[packet] : Declarations{};
  }
  // The caller gave the packet's header.
  bool is_finished(uint64_t packet) const noexcept { return find_declared(packet).is_finished; }
  // Removes the packet's declarations and its ranges. Returns true if there were any.
  bool forget_declarations(uint32_t packet);
  // Removes copies of ranges that moved in `accesses`. Throws std::bad_alloc; strong guarantee.
  void drop_unused_accesses();
  // Adds a finished packet; its header and completion signal stay as they are. Requires room.
  // Throws Error for a packet of type INVALID. Strong guarantee.
  void put(const aql::Packet64& finished);
  // Adds a barrier-AND packet without dependencies, with a planned header. Otherwise as put().
  void put_barrier();
  // Reverts put_barrier().
  void drop_barrier() noexcept;

  void plan() {
    const size_t count = packets.size();
    if (kept && planned_ == count) return;
    planned_ = 0;  // no plan if an exception follows
    if (is_plain()) {
      forget_plan();
    } else {
      plan_packets(count);
    }
    // A recording's packets may have headers of declarations that have been removed.
    if (kept && is_plain())
      for (size_t i = 0; i < count; ++i) put_header(i, plain_.interior);
    planned_ = count;
  }
  // Declarations or packets have changed, so a kept plan is no longer valid.
  void replan() noexcept { planned_ = 0; }
  // Replaces a dispatch. Declarations and planned header stay.
  aql::Packet64& exchange(size_t packet, const aql::Packet64& dispatch) noexcept {
    aql::Packet64& place = packets[packet];
    const uint16_t header = planned_ == packets.size() ? place.header() : dispatch.header();
    place = dispatch;
    put_header(packet, header);
    return place;
  }
  // Header of a planned packet. Packets hold their headers, except the first and last one of a
  // plain batch.
  uint16_t header(uint64_t packet) const noexcept {
    if (!is_plain()) return packets[packet].header();
    if (packet + 1 == planned_) return packet == 0 ? plain_.alone : plain_.last;
    return packet == 0 ? plain_.first : plain_.interior;
  }
  // Fence and barrier costs of packets [from, from + count).
  aql::HeaderCosts costs(uint64_t from, uint64_t count) const noexcept {
    if (count != planned_) return costs_by_packet(from, count);
    if (!is_plain()) return planned_costs_;
    return count == 1 ? plain_costs_.alone
                      : plain_costs_.ends + plain_costs_.interior * (count - 2);
  }
  // Headers for the flight recorder. Requires a plan.
  FlightHeaders flight_headers() const noexcept {
    if (is_plain()) return planned_ == 1 ? plain_flight_.alone : plain_flight_.many;
    return {.first = header(0), .last = header(planned_ - 1)};
  }
  // Flags of a packet without declarations that is neither first nor last.
  aql::HeaderFlags plain_flags() const noexcept { return aql::header_flags(plain_.interior); }
  // Copies packets into the ring (writer.hpp, Emitter and RunEmitter). The second form does not
  // emit the batch's first packet. Requires a plan and the completion signal.
  uint32_t emit(uint64_t packet, void* slot) const noexcept {
    const aql::Packet64& staged = packets[packet];
    (void)aql::fill(slot, staged);
    if (const hsa_signal_t signal = signal_of(packet); signal.handle != 0)
      static_cast<aql::Packet64*>(slot)->set_completion_signal(signal);
    return aql::first_word(header(packet), staged.setup());
  }
  void emit(uint64_t first, std::span<aql::Packet64> slots) noexcept;
  // The last plan, one entry per packet.
  std::span<const PacketPlan> last_plan();
  // Ends a submission. The packets stay, and more may follow.
  void reopen() noexcept {
    packets.open();
    timing_signals.clear();
    value = 0;
    published = 0;
    completion = {0};
  }
  void clear() noexcept {
    packets.clear();
    declared.clear();
    accesses.clear();
    own_signal = {0};
    loans.clear();
    reopen();
  }
  // A batch that accepts no more packets, because its kernarg memory is gone.
  void end(EndedBy what) noexcept;

 private:
  friend class BatchQueue;
  void plan_packets(size_t count);
  void make_plan(size_t count);
  void acquire_kernargs() noexcept;
  void forget_plan() noexcept {
    plans_.clear();
    last_.declared.clear();
  }
  // The engine's completion signal of the packet; 0: none.
  hsa_signal_t signal_of(uint64_t packet) const noexcept {
    return packet + 1 == planned_           ? completion
           : packet < timing_signals.size() ? timing_signals[packet]
                                            : hsa_signal_t{0};
  }
  void put_header(size_t packet, uint16_t header) noexcept {
    packets[packet].word[0] = aql::first_word(header, packets[packet].setup());
  }
  // Packets without declarations get the same headers, except the first and the last one.
  struct PlainHeaders {
    uint16_t alone, first, interior, last;
  };
  PlainHeaders plan_plain();

  aql::HeaderCosts costs_by_packet(uint64_t from, uint64_t count) const noexcept;

  const std::unique_ptr<FencePlanner> planner_;
  const PlainHeaders plain_;
  const struct { aql::HeaderCosts alone, ends, interior; } plain_costs_;
  const struct { FlightHeaders alone, many; } plain_flight_;
  std::vector<PacketPlan> plans_;     // of the last plan(); for a plain batch, made on request
  aql::HeaderCosts planned_costs_{};  // of all packets; not for a plain batch
  // Input of plans_. A batch with the same declarations is not planned again.
  struct {
    std::vector<Declarations> declared;  // empty: none
    std::vector<AccessRange> accesses;
  } last_;
  size_t planned_ = 0;
  // in the queue's list: the next one, and the pointer to this one
  Publication* next_ = nullptr;
  Publication** link_ = nullptr;
};

[[noreturn]] void refuse_declaration(const Publication& publication);
inline Declarations& PacketRef::declarations() const {
  if (size_t{packet} + 1 != publication->packets.size() || publication->published != 0) [[unlikely]]
    refuse_declaration(*publication);
  return publication->declarations_of(packet);
}
inline std::vector<AccessRange>& PacketRef::accesses() const noexcept {
  return publication->accesses;
}

}  // namespace detail
}  // namespace uptempo
