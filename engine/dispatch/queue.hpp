// Queue: an HSA queue with the resources that batches need: writer, timeline, signals and kernarg
// blocks. The constructor allocates all of them; none grows later.
//
// Thread safety: one owner at a time. The Queue and all its BatchSubmitters belong to one thread;
// any thread may wait for a Completion. pressure() may be called from any thread. Threads that
// submit concurrently use a Queue each, with its own HSA queue or over a SharedQueue.
//
// Back-pressure: ring, timeline, signals and kernarg slabs are finite. When one is exhausted, the
// call waits for the oldest publication until the caller's deadline. Then it throws an Error that
// names the resource, its size and its use. No lock is held while waiting. pressure() reports the
// level of each resource (pressure.hpp), so that a program can slow down earlier.
//
// Errors: if the packet processor stops the queue, or the GPU accesses invalid memory, every
// pending Completion ends with that error and later submissions throw at once. A borrowed queue
// learns of errors through the source passed to borrow(). Without one, only deadlines and memory
// faults reveal a dead queue.
//
// Tools: if a profiler interposes the HSA functions that publish packets, the Queue publishes by
// these functions alone (ring_access.hpp). Otherwise it writes indices and doorbell directly.
//
// Lifetime: the destructor waits for the queue's publications up to QueueOptions::drain_timeout,
// then stops the queue; unfinished publications end with an error. After one second it writes to
// stderr what it waits for, and at the end what is lost (Counters::queues_given_up counts that).
// Kernels and buffers in use must live until then. The HSA queue is kept for the next Queue,
// SharedQueue or Streams of the same agent, ring size and access; the end of the Runtime destroys
// it. A borrowed queue cannot be stopped: unfinished work is reported as lost, but its packets may
// still execute. Therefore the Queue's kernarg blocks and all signals that it uses stay until the
// end of the Runtime, and the caller's kernels and buffers must live until the owner has destroyed
// the HSA queue. After the end of the Runtime the destructor does nothing.
//
// Misuse: a batch that outlives its Queue throws Error (batch_submitter.hpp). So does every
// function of a moved-from Queue and of objects made over it; such a Queue may be destroyed or
// assigned to. After the end of the Runtime, pressure() and submissions throw Error.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <uptempo/aql/writer.hpp>
#include <uptempo/completion/completion.hpp>
#include <uptempo/dispatch/pools/pressure.hpp>
#include <uptempo/memory/kernarg_placement.hpp>
#include <uptempo/runtime/agent.hpp>
#include <uptempo/runtime/ring_access.hpp>

namespace uptempo {

namespace detail {
class BatchQueue;
class SharedHsaQueue;
struct StateAccess;  // defined by the tests, for objects without ROCr
}  // namespace detail

// Packets of a batch or a recording that get a completion signal for their times, which
// Completion::times() returns. Results of different modes are not comparable: each additional
// signal costs the device a write and the host an event-less signal of the pool.
enum class Timing : uint8_t {
  none,
  batch,  // first and last packet
  each,   // every packet
};

struct QueueOptions {
  // ring size, a power of two; raised to 256, and raised or lowered to the agent's limits
  uint32_t packets = 4096;
  // unfinished publications at a time, 1 to 65,536; each has an interrupt signal of the process's
  // budget (signal.hpp)
  uint32_t publications = 64;
  // event-less signals for Timing::batch and each, at most 1,048,576
  uint32_t timing_signals = 256;
  uint32_t kernarg_bytes = 2 << 20;  // for all unfinished publications and unsubmitted batches
  uint32_t kernarg_slab_bytes = 16 << 10;  // largest block of a dispatch or launch
  // where kernarg blocks are (kernarg_placement.hpp)
  KernargPlacement kernargs = KernargPlacement::host;
  std::chrono::nanoseconds drain_timeout = std::chrono::seconds(10);
  // Whether packets are published by HSA calls alone, so that profilers see them.
  RingAccessMode access = RingAccessMode::automatic;
};

// An HSA queue that the caller creates and destroys, for streams (streams.hpp). The library cannot
// receive its errors: the owner's error callback must set `error`, which must live until the last
// stream has ended. Without it, only deadlines and memory faults reveal that the queue is dead.
struct BorrowedQueue {
  hsa_queue_t* queue = nullptr;
  const std::atomic<hsa_status_t>* error = nullptr;
};

class Queue {
 public:
  // Creates an HSA queue. Throws Error.
  explicit Queue(const Agent& agent, const QueueOptions& options = {});

  // Uses an HSA queue that the caller creates and destroys. While the Queue exists, no other code
  // may publish to the HSA queue (writer.hpp says why): not a queue of HIP's, or of another library
  // that goes on using it. A submission that finds other packets in it throws Error, unless it is
  // published by HSA calls (describe()), whose index may be a tool's. The owner's error callback
  // must set `error`, which must outlive the Queue. QueueOptions::packets is ignored. Throws Error.
  static Queue borrow(const Agent& agent, hsa_queue_t* queue,
                      const std::atomic<hsa_status_t>* error = nullptr,
                      const QueueOptions& options = {});

  Queue(Queue&&) noexcept;
  Queue& operator=(Queue&&) noexcept;
  ~Queue();

  // Returns the completion of everything submitted so far.
  Completion last_submitted() const;
  // Waits for last_submitted(). Throws Error if the queue has failed.
  void wait(WaitPolicy policy = {}) const { last_submitted().wait(policy); }

  // Waits as wait(), until the deadline. Then throws an Error that names the first unfinished
  // submission, its call site and its kernels. For programs that must learn of work that hangs: the
  // destructor can only report it on stderr.
  void drain(Deadline deadline) const;

  // The submissions that may run, and the last 60 or so, oldest first: call sites, packets with
  // kernels, headers and grids, and what the device has done with them. A snapshot, for a person;
  // lines may change. Kernels that the library has not loaded are named if ROCr knows them. Any
  // thread. Cost: reads the ring; recording itself costs some stores for each submission. Throws
  // Error after the end of the Runtime.
  std::string report() const;

  // Not to be used after the Queue's destruction: the HSA queue may then serve another owner.
  hsa_queue_t* handle() const;
  const Agent& agent() const;
  uint32_t ring_size() const;
  // Where the kernarg blocks of batches and of recordings made for this queue are, and why.
  const KernargPlace& kernargs() const;
  // True if the ring is in the GPU's memory (writer.hpp).
  bool has_device_ring() const;
  // Levels of ring, timeline and pools. Any thread; see pressure.hpp for its cost.
  Pressure pressure() const;
  // Every choice made for this queue, with its reason: how packets are published, doorbell,
  // signals, kernarg memory, fence rules, the completion thread. As Runtime::describe(). Any
  // thread. Throws Error.
  std::string describe() const;
  // Returns the resources of finished publications to their pools. Submissions do this, too; call
  // it before reading pressure(). Does nothing after the end of the Runtime.
  void reclaim();

 private:
  friend class BatchSubmitter;
  friend class SharedQueue;
  friend class Recording;
  friend struct detail::StateAccess;
  explicit Queue(std::unique_ptr<detail::BatchQueue> state) noexcept;
  // Throws Error, with `call` as the failed call, if the Queue was moved from.
  detail::BatchQueue& state(const char* call) const;

  std::unique_ptr<detail::BatchQueue> state_;
};

// SharedQueue: one HSA queue for several threads, each with its own Queue over it.
//
//   SharedQueue shared{gpu};
//   std::thread worker([&] {
//     Queue mine = shared.producer();   // own timeline, signals, kernarg blocks and counters
//     BatchSubmitter batch{mine};       // as over any other Queue
//     ...
//   });
//
// For programs with more submitting threads than hardware queues. The threads share only the ring
// and commit to it in order, without waiting for each other (aql/shared_ring.hpp).
//
// Ordering: a batch that fits in the ring occupies consecutive slots. The batches of one thread
// keep the order of their submissions; batches of different threads have the order in which they
// obtained their slots. The first and last packet of a batch have their barrier bits set. Therefore
// such batches of different threads do not overlap on the device, and the completion of a batch
// means that everything before it in the queue is complete, including other threads' packets.
// Threads whose work should overlap use separate HSA queues.
//
// A batch longer than the ring is published in parts of half a ring, with packets of other threads
// possibly between them. Its fence plan remains correct, because fences are agent-wide.
//
// Back-pressure: each thread has its own timeline, signals and kernargs. All threads share the
// ring; free slots go to the first thread that asks. A waiting thread is served next once a ring
// full of packets has overtaken it. Until it is served, other threads find the ring full, including
// try_submit().
//
// Errors: if the packet processor stops the queue, or the GPU accesses invalid memory, every Queue
// over it ends with that error. For a borrowed queue, as for Queue.
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
// Misuse: as for Queue.
// Thread safety: any thread may call producer(), also for another thread. publish_own() takes no
// lock: the caller excludes submissions and other calls of publish_own().
class SharedQueue {
 public:
  // Creates an HSA queue of `options.packets` packets. The other options apply to each Queue.
  // Throws Error.
  explicit SharedQueue(const Agent& agent, const QueueOptions& options = {});

  // Uses an HSA queue that the caller creates, and destroys after the last Queue over it. As long
  // as one of them or the SharedQueue exists, other code may publish to the HSA queue only in
  // publish_own(); otherwise packets are lost, and not every time with an Error. The owner's error
  // callback must set `error`, which must outlive the last Queue; without it, only deadlines and
  // memory faults reveal that the HSA queue is dead. QueueOptions::packets is ignored: the ring is
  // the HSA queue's. Enables times of packets in the HSA queue. Throws Error, also for a queue of
  // type HSA_QUEUE_TYPE_SINGLE, which has one producer.
  static SharedQueue borrow(const Agent& agent, hsa_queue_t* queue,
                            const std::atomic<hsa_status_t>* error = nullptr,
                            const QueueOptions& options = {});
  // Lets the caller publish packets of its own to a borrowed HSA queue: publish(room) stores at
  // most `room` packets with their headers, moves the write index and rings the doorbell before it
  // returns, by HSA's functions; otherwise only in a ring that is written directly (describe()).
  // Requires that no Queue over it submits meanwhile: the caller stops its threads. So publish() is
  // the only producer, and can move the write index after the packets are stored, which is safest
  // (writer.hpp). Batches and these packets are ordered as batches of different threads are.
  //
  // `room` may be 0: nothing waits for a slot, and up to seven slots of finished packets may not be
  // free yet. publish() must not wait for work, and must not call publish_own(). A kernel of these
  // packets that reads its packet (KernelInfo::reads_packet) holds no slot: the packet processor
  // may free it at the launch. Wait for its end before a Queue submits again and before the next
  // publish_own(), or publish it by BatchSubmitter::raw(), which holds the slot.
  //
  // Throws Error for a queue that is not borrowed or has failed, and if other code has published
  // before. If publish() throws, so does this; packets that it has published stay. Packets that
  // need no HSA function are simpler as BatchSubmitter::raw(), at any time.
  void publish_own(const std::function<void(uint64_t room)>& publish);

  // Returns a Queue for one thread. Throws Error, also after the end of the Runtime in which the
  // HSA queue was created. If the HSA queue has failed, the Queue refuses its first submission.
  Queue producer();

  hsa_queue_t* handle() const;
  const Agent& agent() const noexcept { return agent_; }
  uint32_t ring_size() const;

 private:
  SharedQueue(const Agent& agent, const QueueOptions& options,
              std::shared_ptr<detail::SharedHsaQueue> common);
  // As Queue::state().
  detail::SharedHsaQueue& common(const char* call) const;

  Agent agent_;
  QueueOptions options_;
  std::shared_ptr<detail::SharedHsaQueue> common_;
};

}  // namespace uptempo
