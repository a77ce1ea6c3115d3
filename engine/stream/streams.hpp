// Streams: the streams of one agent, and the hardware queues that they share.
//
//   Streams streams{gpu};
//   Stream upload{streams}, compute{streams};
//   compute.wait(upload.record());
//   compute.launch(saxpy, Grid{n}.by(256), y, x, 2.0f, n);
//   streams.synchronize();
//
// Queues of hardware are few and dear, streams are many and cheap. At most StreamsOptions::hardware_queues are made, when streams are made; a stream with
// another priority or mask of compute units shares with its like only. Work of streams that share a queue is taken from it in the order in which it was put there, and may
// overlap. A stream that has nothing unfinished moves away from a queue that is busy with the work of others to one that is idle.
//
// Default stream. default_stream() is a stream like any other, made when first asked for. With DefaultStreamOrder::legacy it is ordered against all blocking streams (StreamOptions::blocking):
// what is put on it begins after everything that was put on them before, and what is put on them later begins after it. That costs by what is
// unfinished, not by how many streams there are: a marker for each busy hardware queue, and nothing for idle ones.
//
// Thread safety: all functions from any thread; different streams may be used by different threads at a time, one stream by one thread at a time (stream.hpp). Threads that put
// work into the same hardware queue take a lock for the time it takes to write a packet.
//
// Lifetime: streams keep what they need of it alive. When the last of them and Streams itself have gone, what is unfinished is waited for up to
// QueueOptions::drain, once for all hardware queues and copy engines, and what is unfinished then ends with an error. Kernels and buffers in use must live until then. After the Runtime has gone nothing is done.
// Other threads may meanwhile use streams, but not the default stream, which goes with the Streams, and wait for events: such a wait ends when the work is complete, or is given up as above.
// No function of the Streams may be running, and, where the last stream has gone, no call on a stream of other Streams that waits for an event of these: it asks their queues for a signal.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include "engine/dispatch/queue.hpp"
#include "engine/runtime/agent.hpp"
#include "engine/stream/copy/copy_ends.hpp"

namespace uptempo {

class Stream;

namespace detail {
class LauncherCore;
class StreamsState;
}  // namespace detail

enum class DefaultStreamOrder : uint8_t {
  independent,  // like any other stream
  legacy,       // after and before everything that is put on blocking streams
};

struct StreamsOptions {
  uint32_t hardware_queues = 4;  // at most, of each priority and mask that streams ask for
  uint32_t own_queues = 4;       // at most, of streams that wait for the host (Stream::wait)
  DefaultStreamOrder default_order = DefaultStreamOrder::independent;
  CopyLimits copies{};
  QueueOptions queue{};  // of each of them; `publications` are markers that may be unfinished, two at least
  uint32_t epoch_packets =
      128;  // launches of a queue after which one carries a completion signal, so that kernarg memory comes back
  // Every launch acquires at system scope, as the specification's text asks for arguments that the host has just written; on gfx9 agent scope is enough (stream_queue.hpp).
  bool system_acquires = false;
  std::chrono::nanoseconds patience = std::chrono::seconds(30);  // how long a call waits for room
  uint64_t spill_bytes =
      32 << 20;  // of each queue, at most, for kernarg blocks that are larger than a slab (Stream::launch)
};

class Streams {
 public:
  explicit Streams(const Agent& agent, const StreamsOptions& options = {});
  // Over queues without ROCr; see streams_state.hpp.
  explicit Streams(std::shared_ptr<detail::StreamsState> state);
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  // Made when first asked for. Throws Error.
  Stream& default_stream();
  // The stream that the calling thread has chosen with a CurrentStream, else the default stream.
  Stream& current();

  // Returns when everything put on any stream before is complete. Its cost depends on the number of hardware queues only. Throws Error if a queue has failed.
  void synchronize(WaitPolicy policy = {});

  // Hardware queues made so far.
  uint32_t hardware_queues() const;
  const Agent& agent() const noexcept;

 private:
  friend class Stream;
  friend class CurrentStream;
  friend class detail::LauncherCore;
  std::shared_ptr<detail::StreamsState> state_;
  std::unique_ptr<Stream> default_;
  std::once_flag default_once_;
};

// While one lives, it is this stream that Streams::current() of the calling thread gives; they may be nested. Belongs to the thread that made it; the stream outlives it.
class CurrentStream {
 public:
  explicit CurrentStream(Stream& stream) noexcept;
  ~CurrentStream();
  CurrentStream(const CurrentStream&) = delete;
  CurrentStream& operator=(const CurrentStream&) = delete;

 private:
  friend class Streams;
  Stream& stream_;
  CurrentStream* const outer_;
};

}  // namespace uptempo
