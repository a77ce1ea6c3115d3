// RunQueues: the two HSA queues of a bench, each large enough for all packets of a run. Private to
// Bench.
//
// Thread safety: one owner.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <uptempo/runtime/agent.hpp>
#include "tools/fence_scope/report/report.hpp"
#include "tools/fence_scope/run/run_packets.hpp"
#include "tools/fence_scope/sequence/sequence.hpp"
#include "tools/support/packet_queue.hpp"

namespace uptempo::fence_scope {

class RunQueues {
 public:
  // Throws support::UsageError if the device's queues are too small for the sequence.
  RunQueues(const Agent& gpu, const Sequence& sequence, TimingMode timing);

  support::PacketQueue& operator[](uint32_t queue) noexcept { return queues_[queue]; }
  const support::PacketQueue& operator[](uint32_t queue) const noexcept { return queues_[queue]; }

  // Waits until the closing packets and the copies of a run are complete. Throws Error.
  void wait(const Sequence& sequence, const SignalHandles& signals);
  // Writes back unreleased data, so that it does not overwrite later contents. Throws Error.
  void flush();
  // Destroys the queues. Call before the memory and signals that their packets use are destroyed.
  void clear() noexcept { queues_.clear(); }

 private:
  std::vector<support::PacketQueue> queues_;
  std::array<bool, 2> used_{};  // [queue]: the sequence has dispatches in it
};

}  // namespace uptempo::fence_scope
