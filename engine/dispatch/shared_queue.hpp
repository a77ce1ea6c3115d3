// SharedQueue: one HSA queue for several threads, each of which gets a Queue of its own over it.
//
//   SharedQueue shared{gpu};
//   std::thread worker([&] {
//     Queue mine = shared.producer();           // its own timeline, signals, kernarg blocks and counters
//     BatchSubmitter batch{mine};               // as over any other Queue
//     ...
//   });
//
// For programs with more submitting threads than hardware queues, or whose threads take small turns on one piece of work. The threads meet nowhere but in the ring, where
// they commit in order without waiting for each other (aql/shared_ring.hpp).
//
// Order. A batch that fits in the ring lies in it in one piece, and the batches of one thread in the order of its submissions; among threads the order is that in
// which they got their slots. The first packet of a batch and the last one have their barrier bits set, so batches of different threads do not overlap on the device, and the
// completion of one means that everything before it in the queue, also of other threads, is complete. Threads whose work should overlap use a Queue each.
//
// A batch longer than the ring goes out in portions of half a ring, between which there may be packets of other threads. Its plan is none the worse for them: fences are
// agent-wide and theirs only add to it, its kernargs and inputs were written before its first packet, whose system acquire nothing has made stale, and what its
// packets wait for is what they declare. Until its last packet is out, only this thread's Queue takes no other batch.
//
// Back-pressure. Timeline, signals and kernargs are the thread's own; the ring is everybody's, and free slots go to whoever comes first. A thread that waits is
// served next once a ring full of packets has overtaken it; until then others, also try_submit(), find the ring full.
//
// Errors. When the packet processor stops the queue or the GPU accesses memory that it must not, every Queue over it ends with that error.
//
// Lifetime. The HSA queue lives as long as the last of the SharedQueue and its Queues. Destroying a Queue waits for its publications as usual; because others use the queue
// it cannot be stopped, so that what is unfinished after QueueOptions::drain is reported as lost, but may still be carried out: as with a borrowed queue (queue.hpp).
//
// Misuse. Functions of a SharedQueue that was moved from throw Error, but for agent(); it may be
// destroyed or assigned to.
//
// Thread safety: producer() from any thread, also the one that will not use it; each Queue belongs to one thread at a time.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <memory>

#include "engine/dispatch/queue.hpp"
#include "engine/runtime/agent.hpp"

namespace uptempo {

namespace detail {
class SharedHsaQueue;
}

class SharedQueue {
 public:
  // Makes an HSA queue of `options.packets` packets; the rest of `options` is that of each Queue. Throws Error.
  explicit SharedQueue(const Agent& agent, const QueueOptions& options = {});

  // A Queue for one thread. Throws Error, also when the Runtime in which the HSA queue was made has gone; where that queue has failed, the Queue refuses
  // its first submission.
  Queue producer();

  hsa_queue_t* handle() const;
  const Agent& agent() const noexcept { return agent_; }
  uint32_t ring_size() const;

 private:
  // Throws Error, as `call`, for a SharedQueue that was moved from.
  detail::SharedHsaQueue& common(const char* call) const;

  Agent agent_;
  QueueOptions options_;
  std::shared_ptr<detail::SharedHsaQueue> common_;
};

}  // namespace uptempo
