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
#include "engine/dispatch/fence_plan.hpp"
#include "engine/dispatch/kernarg_pool.hpp"
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

// One batch on its way out. The submitter keeps it between submissions, so that its vectors keep their capacity.
//
// Of a packet of which the caller says nothing nothing is kept but the packet: a plan gives the same header to all such packets, but for a batch's
// first and last one.
struct Publication {
  explicit Publication(FencePolicy the_policy, bool is_kept = false);

  PacketStore packets;
  struct Said {
    uint32_t packet;
    PacketIntent intent;
    uint16_t header;  // of a finished packet
  };
  std::vector<Said> said;  // of packets of which the caller says something, in order
  std::vector<AccessRange> accesses;
  std::vector<hsa_signal_t> timing_signals;  // of the first packets, 0 where there is none
  KernargPool::Cursor kernargs;
  hsa_signal_t own_signal{0};  // the caller's completion signal, instead of one of the pool
  Timing timing = Timing::none;
  aql::Chunking chunking;
  const FencePolicy policy;
  const bool kept;  // by a recording: once planned it stays so, and it outlives its submissions

  [[no_unique_address]] GenerationTag touched;  // how often, for those that refer to a packet

  // Set while the publication is longer than the ring and partly out.
  uint64_t value = 0;
  uint64_t published = 0;
  hsa_signal_t completion{0};

  // Nothing is said of any packet and none is timed.
  bool is_plain() const noexcept { return said.empty() && timing == Timing::none; }
  PacketRef ref_of(size_t packet) noexcept { return {this, static_cast<uint32_t>(packet), touched}; }
  PacketRef ref_of_last() noexcept { return ref_of(packets.size() - 1); }
  // For saying something about a packet.
  PacketIntent& intent_of(uint32_t packet);
  bool is_declared(uint32_t packet) const noexcept;
  // Nothing is said of the packet any more; true if something was. The ranges that it declared are dropped.
  bool forget_intent(uint32_t packet);
  // Keeps a finished packet in `place`, just added; its header and its completion signal stay as they are.
  void put(aql::Packet64& place, const aql::Packet64& finished);
  // The same for a barrier-AND packet without dependencies; its header is planned.
  void put_barrier(aql::Packet64& place);
  // Takes that back; it was put last.
  void drop_barrier() noexcept;

  void plan();
  // What was said has changed, or packets were added: a kept plan does not hold any more.
  void replan() noexcept { planned_ = 0; }
  // Of a planned packet.
  uint16_t header(uint64_t packet) const noexcept;
  // Puts the completion signal of a packet, if it has one of ours, into its slot. The completion signal is chosen.
  void put_signal(uint64_t packet, aql::Packet64& slot) const noexcept;
  // Packets [1, 1 + count) have no completion signal of ours; their headers are those of the array, or all the same where there is none.
  struct Interior {
    uint64_t count;
    const uint16_t* headers;
    uint16_t same;
  };
  Interior interior() const noexcept {
    return {timing == Timing::none && planned_ > 2 ? planned_ - 2 : 0, is_plain() ? nullptr : headers_.data(),
            plain_.interior};
  }
  // The plan that was made last, packet by packet.
  std::span<const PacketPlan> last_plan();
  // Not on its way any more; packets stay, and more may follow.
  void reopen() noexcept;
  void clear() noexcept;

 private:
  // A plan does not tell apart packets of which nothing is said, but for the first and the last one.
  struct PlainHeaders {
    uint16_t alone, first, interior, last;
  };
  static PlainHeaders plan_plain(FencePolicy policy) noexcept;

  const PlainHeaders plain_;
  std::vector<PacketIntent> intents_;  // one for each packet, where something is said
  std::vector<PacketPlan> plans_;      // of the last plan(), made when asked for if nothing was said
  std::vector<uint16_t> headers_;      // as plans_, where something is said
  size_t planned_ = 0;
};

}  // namespace detail
}  // namespace uptempo
