// Streams: the streams of one agent, and the hardware queues that they share.
//
//   Streams streams{gpu};
//   Stream upload{streams}, compute{streams};
//   compute.after(upload.record());
//   compute.launch(saxpy, Grid{n}.by(256), y, x, 2.0f, n);
//   streams.synchronize();
//
// Hardware queues are few and expensive; streams are many and cheap. Creating streams creates at
// most StreamsOptions::hardware_queues queues. A stream with another priority or compute-unit mask
// shares only with its like. Work of streams that share a queue starts in the order of submission
// and may overlap. A stream without unfinished work moves from a queue that is busy with other
// streams' work to an idle one.
//
// Default stream: default_stream() is an ordinary stream, created on first use. With
// StreamsOptions::legacy_default it is ordered against all blocking streams
// (StreamOptions::blocking): its work begins after all their earlier work, and their later work
// begins after its work. The cost depends on unfinished work, not on the number of streams: one
// marker per busy hardware queue, none for idle ones.
//
// Borrowed queues: with StreamsOptions::queues, streams share HSA queues that the caller creates,
// and destroys after the last stream; their priority, mask and ring size are the caller's choice.
// The library enables times of packets in them, before its first packet. It still creates queues
// for streams with a priority or a mask, and for those that wait for the host. Other code may
// publish to a borrowed queue only in publish_own(), as long as streams exist. A stream that finds
// other packets in its queue throws Error, unless packets are published by HSA calls (describe()),
// whose index may be a tool's. Work that is unfinished after drain_timeout is reported as lost but
// may still execute, as for Queue::borrow(): kernels and buffers must live until the caller has
// destroyed the queue.
//
// Thread safety: every function may be called from any thread. Different threads may use different
// streams concurrently; one stream belongs to one thread at a time (stream.hpp). Threads that
// submit to the same hardware queue take a lock while a packet is written.
//
// Lifetime: streams keep the shared state alive. When the Streams and the last stream have been
// destroyed, unfinished work is awaited for up to QueueOptions::drain_timeout, once for all
// hardware queues and copy engines; what is still unfinished then ends with an error. Kernels and
// buffers in use must live until then. After the end of the Runtime, nothing is awaited.
// While the Streams is destroyed, other threads may use streams (not the default stream, which is
// destroyed with it) and wait for events; such a wait ends when the work is complete or given up as
// above. No function of the Streams may be running.
#pragma once

#include <hsa/hsa.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <uptempo/dispatch/queue.hpp>
#include <uptempo/runtime/agent.hpp>
#include <uptempo/stream/copy/copy_memory.hpp>

namespace uptempo {

class Stream;

namespace detail {
class LauncherCore;
class StreamsState;
struct StateAccess;
}  // namespace detail

// The driver's three levels (hsa_amd_queue_set_priority), relative to other streams.
enum class StreamPriority : uint8_t { low, normal, high };

struct StreamsOptions {
  uint32_t hardware_queues = 4;  // limit per priority and mask
  uint32_t own_queues = 4;       // limit for streams that wait for the host (Stream::after)
  // Queues of the caller's that all streams of normal priority without a mask share, instead of
  // created ones. See "Borrowed queues" above.
  std::vector<BorrowedQueue> queues{};
  // The default stream runs before later and after earlier work of blocking streams.
  bool legacy_default = false;
  CopyLimits copies{};
  // The library chooses the copy engine of each copy between host and GPU, by direction and load,
  // where ROCr offers it (5.6 and newer). False: ROCr chooses one for each direction, so a copy
  // that waits delays later ones.
  bool choose_engines = true;
  // Options of each queue. `publications` limits unfinished markers; at least two. The arguments of
  // a launch fit in a kernarg slab.
  QueueOptions queue{};
  // Every so many launches of a queue, one carries a completion signal, so that kernarg memory
  // is returned.
  uint32_t epoch_packets = 128;
  // Every launch acquires at system scope, as the specification requires for arguments that the
  // host has just written. On gfx9, agent scope is enough: L2 does not cache fine-grained host
  // memory.
  bool system_acquires = false;
  // Time limit of a call that waits for room.
  std::chrono::nanoseconds patience = std::chrono::seconds(30);
};

class Streams {
 public:
  explicit Streams(const Agent& agent, const StreamsOptions& options = {});
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  // Created on first use. Throws Error.
  Stream& default_stream();

  // Blocks until all earlier work of all streams is complete. The cost depends only on the number
  // of hardware queues. Throws Error if a queue has failed.
  void synchronize(WaitPolicy policy = {});
  // The same with a deadline. Returns false if the deadline passes first.
  [[nodiscard]] bool synchronize(Deadline deadline, WaitPolicy policy = {});

  // Lets the caller publish packets of its own to a borrowed queue: publish(room) stores at most
  // `room` packets with their headers, moves the write index and rings the doorbell before it
  // returns, by HSA's functions; otherwise only in a ring that is written directly (describe()). It
  // is the only producer meanwhile, and can move the write index after the packets are stored,
  // which is safest (writer.hpp). A packet's barrier bit orders it after all earlier work in the
  // queue. Later work of a stream does not wait for it: pass its completion signal to
  // Stream::after().
  //
  // `room` may be 0: nothing waits for a slot, and up to seven slots of finished packets may not be
  // free yet. The lock of the queue is held while publish() runs, and threads of other queues wait
  // for it to end epochs. So publish() must not wait for work, use streams or call publish_own(). A
  // kernel of these packets that reads its packet (KernelInfo::reads_packet) holds no slot: the
  // packet processor may free it at the launch. Launch it on a stream instead, or publish it to a
  // queue of its own.
  //
  // Throws Error for another queue, for one that has failed, and if other code has published
  // before. If publish() throws, so does this; packets that it has published stay. Cost: the lock
  // of the queue; a marker if kernels of streams that read their packets are in its open epoch.
  void publish_own(const hsa_queue_t* queue, const std::function<void(uint64_t room)>& publish);

  // Number of hardware queues in use so far, borrowed ones included.
  uint32_t hardware_queues() const;
  // Every choice made for these streams, with its reason: limits, hardware queues as
  // Queue::describe() gives them, launches, copies. As Runtime::describe(). Throws Error.
  std::string describe() const;
  // The last launches and markers of each hardware queue, as Queue::report(). Throws Error.
  std::string report() const;
  // Where kernel arguments are, and why (StreamsOptions::queue.kernargs).
  const KernargPlace& kernargs() const noexcept;
  const Agent& agent() const noexcept;

 private:
  friend class Copier;
  friend class Stream;
  friend class detail::LauncherCore;
  friend struct detail::StateAccess;
  explicit Streams(std::shared_ptr<detail::StreamsState> state) noexcept;

  std::shared_ptr<detail::StreamsState> state_;
  std::unique_ptr<Stream> default_;
  std::once_flag default_once_;
};

}  // namespace uptempo
