// The packets that complete a signal that a queue waits for, and cycles of such waits.
//
// A queue whose first packet waits for a signal launches nothing after it. If only packets of such
// queues complete the signals that they wait for, none of them goes on by itself: a deadlock. The
// host or a kernel may still store to one of the signals, which no report can know.
//
// Packets that were launched, packets behind an unpublished slot or a doorbell that was not rung, and
// signals that no packet completes make no deadlock.
#pragma once

#include <span>
#include <vector>

#include "cp/report/snapshot.hpp"

namespace uptempo::vgpu {

// A packet that completes a signal, with its queue.
struct CompleterOf {
  const QueueSnapshot* queue;
  const Completer* packet;
};

// Packets of all queues that complete the signal, in order of queues and packets.
std::vector<CompleterOf> completers_of(std::span<const QueueSnapshot* const> queues,
                                       uint64_t signal);

// `queue` waits for `dependency`, which `completer` would satisfy.
struct Wait {
  const QueueSnapshot* queue;
  const Dependency* dependency;
  CompleterOf completer;
};

// Each cycle once, from its first queue on. The completer of each wait is of the next one's queue,
// and that of the last wait is of the first one's.
std::vector<std::vector<Wait>> deadlocks(std::span<const QueueSnapshot* const> queues);

}  // namespace uptempo::vgpu
