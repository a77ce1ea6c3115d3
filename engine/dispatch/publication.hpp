// A batch between its submitter and the ring. Private to engine/dispatch but for Timing.
//
// Thread safety: as a vector.
#pragma once

#include <hsa/hsa.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "aql/packet.hpp"
#include "aql/writer.hpp"
#include "engine/dispatch/command_ref.hpp"
#include "engine/fences/fence_planner.hpp"
#include "engine/fences/fence_rules.hpp"
#include "engine/dispatch/pools/kernarg_pool.hpp"
#include "engine/dispatch/packet_runs.hpp"
#include "engine/dispatch/packet_store.hpp"

namespace uptempo {

// Which packets of a batch get a completion signal for the sake of their times. Results of different modes are not comparable: every
// further signal costs the device a write and the host an event-less signal of the pool.
enum class Timing : uint8_t {
  none,
  batch,  // first and last packet
  each,   // every packet
};

namespace detail {

// The owner of memory that ended before the publication.
enum class Ending : uint8_t { none, queue, runtime };

// One batch on its way out. The submitter keeps it between submissions, so that its vectors keep their capacity.
//
// Of a packet of which the caller says nothing nothing is kept but the packet: a plan gives the same header to all such packets, but for a batch's
// first and last one.
struct Publication {
  // `agent`: whose fences FencePolicy::minimal plans; null for plans that are correct on every target.
  explicit Publication(FencePolicy the_policy, bool is_kept = false, const Agent* agent = nullptr);

  PacketStore packets;
  struct PacketDeclarations {
    uint32_t packet;
    Declarations declarations;
    bool operator==(const PacketDeclarations&) const = default;
  };
  std::vector<PacketDeclarations> declared;  // of packets of which the caller says something, in order
  std::vector<AccessRange> accesses;
  std::vector<hsa_signal_t> timing_signals;  // of the first packets, 0 where there is none
  KernargPool::Cursor kernargs;
  hsa_signal_t own_signal{0};  // the caller's completion signal, instead of one of the pool
  Timing timing = Timing::none;
  aql::Chunking chunking;
  const FencePolicy policy;
  const bool kept;  // by a recording: once planned it stays so, and it outlives its submissions
  Ending ended = Ending::none;

  [[no_unique_address]] GenerationTag touched;  // how often, for those that refer to a packet

  // Set while the publication is longer than the ring and partly out.
  uint64_t value = 0;
  uint64_t published = 0;
  hsa_signal_t completion{0};
  bool has_closing_packet = false;  // the last packet is the engine's own barrier, for this submission

  // Nothing is said of any packet and none is timed.
  bool is_plain() const noexcept { return declared.empty() && timing == Timing::none; }
  PacketRef ref_of(size_t packet) noexcept { return {this, static_cast<uint32_t>(packet), touched}; }
  PacketRef ref_of_last() noexcept { return ref_of(packets.size() - 1); }
  // For saying something about a packet, the last one mostly.
  Declarations& declarations_of(uint32_t packet) {
    if (kept) replan();
    if (declared.empty() || declared.back().packet < packet)
      return declared.emplace_back(PacketDeclarations{.packet = packet, .declarations = {}}).declarations;
    if (declared.back().packet == packet) return declared.back().declarations;
    return declarations_of_earlier(packet);
  }
  bool is_declared(uint32_t packet) const noexcept;
  // What was said of a packet; null if nothing was.
  const PacketDeclarations* find_declared(uint32_t packet) const noexcept;
  // Nothing is said of the packet any more; true if something was. The ranges that it declared are dropped.
  bool forget_declarations(uint32_t packet);
  // Adds a finished packet; its header and its completion signal stay as they are. There is room. Strong guarantee.
  void put(const aql::Packet64& finished);
  // The same for a barrier-AND packet without dependencies; its header is planned.
  void put_barrier();
  // Takes that back; it was put last.
  void drop_barrier() noexcept;

  void plan() {
    const size_t count = packets.size();
    if (kept && planned_ == count) return;
    planned_ = 0;  // if something throws, there is no plan
    if (is_plain()) {
      forget_plan();
    } else {
      plan_packets(count);
    }
    if (kept) plan_replays(count);
    planned_ = count;
  }
  // What was said has changed, or packets were added: a kept plan does not hold any more.
  void replan() noexcept { planned_ = 0; }
  // Makes a packet another dispatch, of which the same is said: it keeps its planned header.
  aql::Packet64& exchange(size_t packet, const aql::Packet64& dispatch) noexcept {
    aql::Packet64& place = edit(packet);
    const uint16_t header = planned_ == packets.size() ? place.header() : dispatch.header();
    place = dispatch;
    put_header(packet, header);
    return place;
  }
  // A packet to be changed, but for what is said of it.
  aql::Packet64& edit(size_t packet) noexcept {
    runs_.changed(packet);
    return packets[packet];
  }
  // Of a planned packet. Packets have their headers, but for the ends of a batch of which nothing is said.
  uint16_t header(uint64_t packet) const noexcept {
    if (!is_plain()) return packets[packet].header();
    if (packet + 1 == planned_) return packet == 0 ? plain_.alone : plain_.last;
    return packet == 0 ? plain_.first : plain_.interior;
  }
  // What packets [from, from + count) cost by their headers.
  aql::HeaderCosts costs(uint64_t from, uint64_t count) const noexcept {
    if (count != planned_) return costs_by_packet(from, count);
    if (!is_plain()) return planned_costs_;
    return count == 1 ? plain_costs_.alone : plain_costs_.ends + plain_costs_.interior * (count - 2);
  }
  // Of a packet in the midst of a batch, of which nothing is said.
  aql::HeaderFlags plain_flags() const noexcept { return aql::header_flags(plain_.interior); }
  // Puts into packets that lie in the ring what they lack: headers of the batch's ends, and completion signals. The first one, which does not lie there, gets them as
  // well. Planned, and the completion signal is chosen.
  void finish_in_place() noexcept;
  // Puts packets that do not lie in the ring there (writer.hpp, Emitter and RunEmitter; not the batch's first one by the run). Otherwise as above.
  uint32_t emit(uint64_t packet, void* slot) const noexcept;
  void emit(uint64_t first, std::span<aql::Packet64> slots) noexcept;
  // The plan that was made last, packet by packet.
  std::span<const PacketPlan> last_plan();
  // Not on its way any more; packets stay, and more may follow.
  void reopen() noexcept;
  void clear() noexcept;
  // Takes no packet from now on: the memory that it wrote to is not its own any more. A kept one
  // keeps its packets.
  void end(Ending why) noexcept;

 private:
  // Of the first entry in `said` that is not for an earlier packet.
  size_t place_of(uint32_t packet) const noexcept;
  Declarations& declarations_of_earlier(uint32_t packet);
  void plan_packets(size_t count);
  void make_plan(size_t count);
  void forget_plan() noexcept {
    plans_.clear();
    last_.packets = 0;
  }
  void plan_replays(size_t count);
  // Of ours, 0 where the packet has none.
  hsa_signal_t signal_of(uint64_t packet) const noexcept {
    return packet + 1 == planned_           ? completion
           : packet < timing_signals.size() ? timing_signals[packet]
                                            : hsa_signal_t{0};
  }
  void put_header(size_t packet, uint16_t header) noexcept {
    packets[packet].word[0] = aql::first_word(header, packets[packet].setup());
  }
  // A plan does not tell apart packets of which nothing is said, but for the first and the last one.
  struct PlainHeaders {
    uint16_t alone, first, interior, last;
  };
  static PlainHeaders plan_plain(FencePolicy policy) noexcept;

  aql::HeaderCosts costs_by_packet(uint64_t from, uint64_t count) const noexcept;

  const PlainHeaders plain_;
  const struct { aql::HeaderCosts alone, ends, interior; } plain_costs_;
  FencePlanner planner_;               // for FencePolicy::minimal
  std::vector<Declarations> declarations_;  // one for each packet, where something is said
  std::vector<PacketPlan> plans_;      // of the last plan(), made when asked for if nothing was said
  aql::HeaderCosts planned_costs_{};      // of all packets, where something is said
  // What plans_ were made of, where something was said: a program that submits the same batch again is not planned anew.
  struct {
    size_t packets = 0;  // 0: nothing
    std::vector<PacketDeclarations> declared;
    std::vector<AccessRange> accesses;
  } last_;
  PacketRuns runs_;  // of a kept one
  size_t planned_ = 0;
};

// What is said of a packet. Throws Error if the handle is not valid any more.
[[noreturn]] void refuse_stale_handle();
inline Declarations& declarations_of(const PacketRef& packet) {
  if (packet.generation != packet.publication->touched) [[unlikely]]
    refuse_stale_handle();
  return packet.publication->declarations_of(packet.packet);
}

inline void declare(const PacketRef& packet, const void* data, size_t bytes, bool writes) {
  declarations_of(packet).declare(packet.publication->accesses, data, bytes, writes);
}

}  // namespace detail
}  // namespace uptempo
