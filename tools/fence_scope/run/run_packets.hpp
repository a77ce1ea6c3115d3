// The packets and copies of one run: what the host does, in order, from dispatches, headers and
// signals; the same as text, and counted.
//
// Thread safety: pure functions; values.
#pragma once

#include <hsa/hsa.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <uptempo/aql/packet.hpp>
#include "tools/fence_scope/run/bench.hpp"
#include "tools/fence_scope/sequence/sequence.hpp"
#include "tools/support/packet_queue.hpp"

namespace uptempo::fence_scope {

inline constexpr std::array<uint32_t, 2> kQueues{0, 1};

// Whether the sequence has dispatches in this queue. A run has no packets in an unused queue.
bool is_used(const Sequence& sequence, uint32_t queue) noexcept;
// Upper bound of a run's packets in this queue.
uint64_t most_packets(const Sequence& sequence, uint32_t queue);

// The two queues of a bench, each large enough for all packets of a run. Throws
// support::UsageError if the device's queues are too small for the sequence.
std::vector<support::PacketQueue> queues_for(const Agent& gpu, const Sequence& sequence,
                                             TimingMode timing);

// The signals of a run (run_signals.hpp) as packets refer to them.
struct SignalHandles {
  hsa_signal_t gate{0};                   // the host releases it to start a gated run
  std::array<hsa_signal_t, 2> closing{};  // [queue]
  std::vector<hsa_signal_t> of_step{};    // null handle: no signal
};

// Packets of one queue, published with one doorbell; or a copy.
struct Action {
  uint32_t queue = 0;
  std::vector<aql::Packet64> packets{};
  std::vector<Bench::Packet> roles{};  // roles of the packets
  size_t copy = 0;                     // the step, if there are no packets
};

// Actions in the order of the steps, so that no step waits for a later one; packets are published
// together as far as possible. `dispatches` has an element for each step; those of copies are
// unused. The roles refer to `sequence`. Throws std::invalid_argument for another number of
// headers.
std::vector<Action> actions(const Sequence& sequence,
                            std::span<const aql::KernelDispatch> dispatches,
                            const SignalHandles& signals, const Headers& headers, Release release);

// The packets of carried-out actions, in the order of each queue. An action's first role has the
// index and the time of publication.
std::vector<Bench::Packet> published(const std::vector<Action>& actions);

// The 64-byte packets as text (aql/text.hpp), a block for each; and copies.
std::string text_of(std::span<const Action> actions, const Sequence& sequence);

// The same for an ungated run of the sequence on no device. All that only a device knows, addresses
// and the sizes of a kernel's segments, is 0. Signals have numbers: 1 and 2 are those of the
// queues' ends, 3 + i is that of step i. Throws SequenceError for an invalid sequence.
std::string dry_run(const Sequence& sequence, const Headers& headers);

// Bench::counts(). `step_signals`: number of steps that have a signal.
DeviceCounts counts_of(std::span<const Action> actions, const Sequence& sequence,
                       const Headers& headers, size_t step_signals);

}  // namespace uptempo::fence_scope
