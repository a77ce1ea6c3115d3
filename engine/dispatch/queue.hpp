// Queue: an HSA queue with everything that batches need around its ring: a writer, a timeline, signals, kernarg blocks. All of it is made
// here, in set-up; nothing grows later.
//
// Thread safety: one owner at a time: the Queue and all its BatchSubmitters belong to one thread. Completions belong to nobody and may be
// awaited anywhere. Threads that submit concurrently use a Queue each, with an HSA queue of its own or over a common one (shared_queue.hpp).
//
// Back-pressure: ring, timeline, signals and kernarg slabs are all finite. Running out of one means waiting for the oldest publication until
// the caller's deadline, then an Error that names the resource, its size and what of it is in use. No lock is held while waiting. To slow
// down before that: pressure(), with a high and a low mark for each (pressure.hpp).
//
// Errors: when the packet processor stops the queue, or the GPU accesses memory that it must not, every pending Completion ends with that
// error and later submissions are refused at once. A borrowed queue learns of errors through the source given to borrow(); without one
// only deadlines and memory faults detect a dead queue.
//
// Lifetime: destroying a Queue waits for its publications up to QueueOptions::drain, then stops the queue; what was unfinished ends with
// an error. Kernels and buffers in use must live until then. A borrowed queue cannot be stopped: what is unfinished after that time is
// reported as lost, but its packets may still be carried out. The Queue's kernarg blocks and signals therefore stay until the
// end of the Runtime, and the caller's kernels, buffers and signals must live until the queue's owner has destroyed it. After the Runtime has
// gone the destructor does nothing.
//
// Misuse: batches that outlive their Queue refuse their use (batch_submitter.hpp). Every function of a Queue
// that was moved from throws Error, and so does what is made over it; it may be destroyed, and
// another Queue may be assigned to it. After the Runtime has gone, pressure() throws Error as well,
// as submissions do.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "aql/writer.hpp"
#include "engine/completion/completion.hpp"
#include "engine/dispatch/pools/pressure.hpp"
#include "engine/runtime/agent.hpp"

namespace uptempo {

namespace detail {
class BatchQueue;
}

struct QueueOptions {
  uint32_t packets = 4096;           // ring size, a power of two; lowered to the agent's maximum
  uint32_t publications = 64;        // that may be unfinished at a time; as many interrupt signals are made,
                                     // which count against the process's budget (signal_budget.hpp)
  uint32_t timing_signals = 256;     // event-less signals for Timing::batch and each
  uint32_t kernarg_bytes = 2 << 20;  // all kernarg blocks of unfinished publications and unsubmitted batches
  uint32_t kernarg_slab_bytes = 16 << 10;  // the largest kernarg block; see kernarg_pool.hpp
  std::chrono::nanoseconds drain = std::chrono::seconds(10);
  QueueMarks marks{};  // when pressure() calls a resource's level high
};

class Queue {
 public:
  // Makes an HSA queue. Throws Error.
  explicit Queue(const Agent& agent, const QueueOptions& options = {});

  // Over a queue that someone else made and destroys. With Producers::foreign others may publish to it as well. `error` must be set by
  // the owner's error callback and outlive the Queue. QueueOptions::packets is not used. Throws Error for Producers::shared, which are those of a
  // SharedQueue.
  static Queue borrow(const Agent& agent, hsa_queue_t* queue, aql::Producers producers,
                      const std::atomic<hsa_status_t>* error = nullptr, const QueueOptions& options = {});

  Queue(Queue&&) noexcept;
  Queue& operator=(Queue&&) noexcept;
  ~Queue();

  // Complete when everything submitted so far is.
  Completion last_submitted() const;
  // Waits for it. Throws Error if the queue has failed.
  void wait(WaitPolicy policy = {}) const { last_submitted().wait(policy); }

  hsa_queue_t* handle() const;
  const Agent& agent() const;
  uint32_t ring_size() const;
  // Interrupt signals that the runtime really gave; with 0, blocked waits poll, at last every 4 ms.
  uint32_t interrupt_signals() const;
  // How full ring, timeline and pools are. Any thread; makes no call and allocates nothing.
  Pressure pressure() const;
  uint32_t free_kernarg_slabs() const;
  uint32_t free_signals() const;
  // Gives back what finished publications held. Submissions do this as they go; of use before looking at the figures above.
  // After the Runtime has gone nothing is done.
  void reclaim();

 private:
  friend class BatchSubmitter;
  friend class SharedQueue;
  friend class Recording;
  explicit Queue(std::unique_ptr<detail::BatchQueue> state) noexcept;
  // Throws Error, as `call`, for a Queue that was moved from.
  detail::BatchQueue& state(const char* call) const;

  std::unique_ptr<detail::BatchQueue> state_;
};

}  // namespace uptempo
