// What the streams of an agent have in common. Private to engine/stream and its tests, which may make one over queues without ROCr.
//
// Thread safety: every function from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/stream/copy/deferred_frees.hpp"
#include "engine/stream/event/event.hpp"
#include "engine/stream/queue/stream_queue.hpp"
#include "engine/stream/streams.hpp"
#include "engine/stream/copy/transfers.hpp"

namespace uptempo::detail {

class StreamsState {
 public:
  using MakeQueue = std::function<std::unique_ptr<StreamQueue>(const StreamQueueOptions& options)>;

  StreamsState(const Agent& agent, const StreamsOptions& options);
  StreamsState(const StreamsOptions& options, MakeQueue make_queue, Transfers::Parts of_copies = {});
  ~StreamsState();
  StreamsState(const StreamsState&) = delete;
  StreamsState& operator=(const StreamsState&) = delete;

  const StreamsOptions& options() const noexcept { return options_; }
  const Agent* agent() const noexcept { return agent_ ? &*agent_ : nullptr; }

  Transfers& transfers() noexcept { return *transfers_; }
  DeferredFrees& frees() noexcept { return frees_; }

  // The queue for a new stream: one more, or the one with the fewest streams. Throws Error. Making a queue takes the driver milliseconds: only those wait for it that need a
  // new one themselves.
  StreamQueue& place(StreamPriority priority, const std::vector<uint32_t>& cu_mask);
  // The same for a stream that has nothing unfinished: the one it has, or an idle one if that is busy.
  StreamQueue& place_again(StreamQueue& queue) noexcept;
  void leave(StreamQueue& queue) noexcept;
  // A queue that nobody shares. Throws Error if none is left.
  StreamQueue& take_own_queue(StreamPriority priority, const std::vector<uint32_t>& cu_mask);
  void give_back_own_queue(StreamQueue& queue) noexcept;

  // Legacy order.
  // Takes, and forgets, the standings of all blocking streams: one for each queue that they have used since.
  void take_blocking(std::vector<Standing>& standings);
  void note_blocking(const Standing& standing);
  // How often something was put on the default stream, and where it stands.
  uint64_t default_sequence() const noexcept { return default_sequence_.load(std::memory_order_acquire); }
  Standing default_standing();
  void note_default(const Standing& standing);

  // From 1, and never twice: an address may be that of another stream before.
  uint64_t next_stream_number() noexcept { return ++stream_numbers_; }

  // Memory that packets may still read: it goes when all uses are over, at a later call or with the queues. Nobody waits for it, and no synchronize() comes by.
  void give_back_later(std::shared_ptr<void> memory, std::vector<QueueUse> uses);

  // Calls f for each queue, of all priorities, that there is.
  void for_each_queue(const std::function<void(StreamQueue&)>& f);
  uint32_t queues();

 private:
  struct Place {
    StreamPriority priority;
    std::vector<uint32_t> cu_mask;
    std::unique_ptr<StreamQueue> queue;
    uint32_t streams = 0;
    bool own = false;
  };
  // Null: there are none to share, or not as many as there may be.
  StreamQueue* try_place(StreamPriority priority, const std::vector<uint32_t>& cu_mask);
  // Null: all are in use. Throws Error if there are as many as there may be.
  StreamQueue* try_own_queue(StreamPriority priority, const std::vector<uint32_t>& cu_mask);
  // With one stream. making_mutex_ is held.
  StreamQueue& make(StreamPriority priority, const std::vector<uint32_t>& cu_mask, bool own);
  Place& place_of(const StreamQueue& queue) noexcept;

  // Puts a marker behind everything, where there is room for one. False if there was none somewhere.
  bool close_epochs() noexcept;
  void give_back_loans() noexcept;
  Transfers::Hooks hooks();

  std::optional<Agent> agent_;
  const StreamsOptions options_;
  const MakeQueue make_queue_;
  std::atomic<uint64_t> stream_numbers_{0};
  struct GivenBack {
    std::shared_ptr<void> memory;
    std::vector<QueueUse> uses;
  };
  std::mutex given_back_mutex_;
  std::vector<GivenBack> given_back_;  // outlive the queues
  DeferredFrees frees_;
  std::unique_ptr<Transfers> transfers_;  // outlives the queues, which use its kernels and memory
  std::mutex
      making_mutex_;  // held by who makes a queue, so that no more are made than may be; taken before mutex_
  std::mutex mutex_;  // of places_; not taken by launches
  std::vector<std::unique_ptr<Place>> places_;
  std::mutex order_mutex_;  // of the standings
  std::vector<Standing> blocking_;
  Standing default_;
  std::atomic<uint64_t> default_sequence_{0};
};

}  // namespace uptempo::detail
