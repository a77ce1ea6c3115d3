// StreamsState: the state shared by an agent's streams. Private to engine/stream and its tests;
// tests can create one over queues without ROCr.
//
// Thread safety: every function may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <uptempo/stream/copy/transfers.hpp>
#include <uptempo/stream/queue/event.hpp>
#include <uptempo/stream/queue/stream_queue.hpp>
#include <uptempo/stream/stream.hpp>

namespace uptempo::detail {

class StreamsState {
 public:
  using MakeQueue = std::function<std::unique_ptr<StreamQueue>(const StreamQueueOptions& options)>;

  StreamsState(const Agent& agent, const StreamsOptions& options);
  // Without ROCr, if there is no agent.
  StreamsState(const StreamsOptions& options, MakeQueue make_queue, Transfers::Parts of_copies,
               const std::optional<Agent>& agent = {});
  ~StreamsState();
  StreamsState(const StreamsState&) = delete;
  StreamsState& operator=(const StreamsState&) = delete;

  const StreamsOptions& options() const noexcept { return options_; }
  const Agent* agent() const noexcept { return agent_ ? &*agent_ : nullptr; }
  // Where all its queues have their kernargs.
  const KernargPlace& kernargs() const noexcept { return kernargs_; }
  Transfers& transfers() noexcept { return transfers_; }

  // The queue of a stream. Returns a new queue, or the one with the fewest streams; with `own`, one
  // without other streams. Throws Error, also if no own queue is left. Creating a queue takes
  // milliseconds in the driver; only streams that also need a new queue wait for it.
  StreamQueue& join(const StreamOptions& options, bool own);
  // For a stream without unfinished work: returns its own queue, or an idle one if its own is busy.
  StreamQueue& rejoin(StreamQueue& queue) noexcept;
  void leave(StreamQueue& queue) noexcept;

  // Legacy order.
  // Moves the last work of all blocking streams to `all`: one per queue and lane that they
  // have used since the last call. Throws std::bad_alloc and changes nothing.
  void take_blocking(std::vector<LastWork>& all);
  void note_blocking(const LastWork& last_work) noexcept;
  // Number of submissions to the default stream, and its last work.
  uint64_t default_sequence() const noexcept {
    return default_sequence_.load(std::memory_order_acquire);
  }
  LastWork default_last_work();
  void note_default(const LastWork& last_work) noexcept;

  // Streams::publish_own().
  void publish_own(const hsa_queue_t* queue, const std::function<void(uint64_t room)>& publish);

  // Calls f for each existing queue of any priority.
  void for_each_queue(const std::function<void(StreamQueue&)>& f);
  uint32_t queues();
  // Throws Error.
  std::string describe();
  // FlightLog::text() of each queue, one after the other. Throws Error after the end of the
  // Runtime.
  std::string report();

 private:
  struct Member {
    StreamPriority priority;
    std::vector<uint32_t> cu_mask;
    bool own;  // for one stream at a time
    uint32_t streams;
    std::unique_ptr<StreamQueue> queue;

    bool serves(const StreamOptions& options, bool wants_own) const noexcept {
      return own == wants_own && priority == options.priority && cu_mask == options.cu_mask &&
             !queue->failed();
    }
  };
  // Returns null if a new queue is to be created.
  StreamQueue* try_join(const StreamOptions& options);
  // The same for an own queue. Throws Error if no more may be created.
  StreamQueue* try_join_own(const StreamOptions& options);
  // True if these streams share the caller's queues.
  bool borrows_for(const StreamOptions& options) const noexcept {
    return !options_.queues.empty() && options.priority == StreamPriority::normal &&
           options.cu_mask.empty();
  }
  StreamQueue& add_queue(const StreamOptions& options, bool own, const BorrowedQueue& borrowed,
                         uint32_t streams);
  Member& member(const StreamQueue& queue) noexcept;

  // Publishes a marker for every open epoch. Returns false if a queue had no room for one.
  bool close_epochs() noexcept;

  const std::optional<Agent> agent_;
  const KernargPlace kernargs_;
  const StreamsOptions options_;
  const MakeQueue make_queue_;
  Transfers transfers_;  // outlives the queues, which use its kernels and memory
  // Held while a queue is created, so that the limit is not exceeded; locked before mutex_.
  std::mutex making_mutex_;
  std::mutex mutex_;  // protects queues_; launches do not take it
  std::vector<std::unique_ptr<Member>> queues_;
  std::mutex order_mutex_;          // protects the members below
  std::vector<LastWork> blocking_;  // has room for every queue and every lane
  LastWork default_;
  std::atomic<uint64_t> default_sequence_{0};
};

}  // namespace uptempo::detail
