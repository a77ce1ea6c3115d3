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
#include "engine/dispatch/fence_plan.hpp"
#include "engine/dispatch/kernarg_pool.hpp"

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
// Packets are kept as they will lie in the ring. A packet of which the caller says nothing has the header that the plan gives to such packets between
// a batch's first and last one, so a batch of them is planned by correcting those two.
struct Publication {
  explicit Publication(FencePolicy the_policy = FencePolicy::planned);

  std::vector<aql::Packet64> packets;
  struct Said {
    uint32_t packet;
    PacketIntent intent;
  };
  std::vector<Said> said;  // of packets of which the caller says something, in order
  std::vector<AccessRange> accesses;
  std::vector<hsa_signal_t> timing_signals;
  KernargPool::Cursor kernargs;
  hsa_signal_t own_signal{0};  // the caller's completion signal, instead of one of the pool
  Timing timing = Timing::none;
  aql::Chunking chunking;
  const FencePolicy policy;
  const aql::HeaderFlags interior;  // of a packet of which nothing is said, neither first nor last

  // Set while the publication is longer than the ring and partly out.
  uint64_t value = 0;
  uint64_t published = 0;
  hsa_signal_t completion{0};

  // Nothing is said of any packet and none is timed.
  bool is_plain() const noexcept { return said.empty() && timing == Timing::none; }
  // For saying something about the packet that was appended last.
  PacketIntent& intent_of_last();
  void append(const aql::Packet64& packet, const PacketIntent& intent);
  // Puts the plan into the packets' headers.
  void plan();
  // The plan that was made last, packet by packet.
  std::span<const PacketPlan> last_plan();
  // Planned and refused: more packets may follow.
  void reopen() noexcept;
  void clear() noexcept;

 private:
  std::vector<PacketIntent> intents_;  // one for each packet, where something is said
  std::vector<PacketPlan> plans_;      // of the last plan(), made when asked for if nothing was said
  size_t planned_ = 0;
};

}  // namespace detail
}  // namespace uptempo
