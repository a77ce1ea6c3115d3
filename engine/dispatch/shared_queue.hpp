// SharedQueue: one HSA queue for several threads, each with its own Queue over it.
//
//   SharedQueue shared{gpu};
//   std::thread worker([&] {
//     Queue mine = shared.producer();   // own timeline, signals, kernarg blocks and counters
//     BatchSubmitter batch{mine};       // as over any other Queue
//     ...
//   });
//
// For programs with more submitting threads than hardware queues, or whose threads work in short
// turns on one task. The threads share only the ring and commit to it in order, without waiting for
// each other (aql/shared_ring.hpp).
//
// Ordering: a batch that fits in the ring occupies consecutive slots. The batches of one thread
// keep the order of their submissions; batches of different threads have the order in which they
// obtained their slots. The first and last packet of a batch have their barrier bits set. Therefore
// such batches of different threads do not overlap on the device, and the completion of a batch
// means that everything before it in the queue is complete, including other threads' packets.
// Threads whose work should overlap use separate HSA queues.
//
// A batch longer than the ring is published in parts of half a ring, with packets of other threads
// possibly between them. Its fence plan remains correct. Fences are agent-wide, so other packets'
// fences only add to it. Its kernargs and inputs were written before its first packet, and nothing
// invalidates that packet's system acquire. Its packets wait only for what they declare.
//
// Back-pressure: each thread has its own timeline, signals and kernargs. All threads share the
// ring; free slots go to the first thread that asks. A waiting thread is served next once a ring
// full of packets has overtaken it. Until it is served, other threads find the ring full, including
// try_submit().
//
// Errors: if the packet processor stops the queue, or the GPU accesses invalid memory, every Queue
// over it ends with that error.
//
// Lifetime: the HSA queue is in use as long as the SharedQueue or any Queue over it exists. The
// last of them stops it if it has unfinished work, and otherwise leaves it to the next owner
// (queue.hpp). The destructor of a Queue waits for its publications. It cannot stop the queue,
// because others use it: work that is unfinished after QueueOptions::drain_timeout is reported as
// lost but may still execute, as with a borrowed queue (queue.hpp). A lost kernel that reads its
// packet (KernelInfo::reads_packet) keeps its slot until it ends, which its batch's completion
// signal shows. From then on, the other threads have the whole ring again. A signal of
// BatchSubmitter::complete_with must therefore have no other use until the last of them has been
// destroyed.
//
// Misuse: functions of a moved-from SharedQueue throw Error, except agent(). It may be destroyed or
// assigned to.
//
// Thread safety: any thread may call producer(), also for another thread. Each Queue belongs to one
// thread at a time.
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
  // Creates an HSA queue of `options.packets` packets. The other options apply to each Queue.
  // Throws Error.
  explicit SharedQueue(const Agent& agent, const QueueOptions& options = {});

  // Returns a Queue for one thread. Throws Error, also after the end of the Runtime in which the
  // HSA queue was created. If the HSA queue has failed, the Queue refuses its first submission.
  Queue producer();

  hsa_queue_t* handle() const;
  const Agent& agent() const noexcept { return agent_; }
  uint32_t ring_size() const;

 private:
  // Throws Error, with `call` as the failed call, if the SharedQueue was moved from.
  detail::SharedHsaQueue& common(const char* call) const;

  Agent agent_;
  QueueOptions options_;
  std::shared_ptr<detail::SharedHsaQueue> common_;
};

}  // namespace uptempo
