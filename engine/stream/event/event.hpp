// Event: a point in the work of a stream, made by Stream::record().
//
//   const Event ready = upload.record();
//   compute.wait(ready);        // work put on `compute` from here on begins after it
//   ready.wait();               // the host waits
//
// A value that owns nothing: copying is free, and one may outlive its stream, its Streams and the Runtime (it is then complete, or failed with its
// queue). The host may wait for it while they are destroyed; streams.hpp says what else may go on then. One that was never recorded is complete. Recording again is assignment: `ready = upload.record()`.
//
// Complete means that everything put on the stream before is complete, and that what it wrote is visible to the host, to copies and to what waits for the event.
//
// Thread safety: as an int; all functions of one that nobody assigns to from any thread.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>

#include "engine/completion/completion.hpp"
#include "engine/stream/event/pending_host_duties.hpp"

namespace uptempo {

namespace detail {
class StreamQueue;
class CopyLane;
class SignalSource;
}  // namespace detail

class Event {
 public:
  Event() = default;

  // Returns when complete. Throws Error if the queue has failed, with the queue's error.
  void wait(WaitPolicy policy = {}) const {
    completion_.wait(policy);
    detail::finish_host_duties();
  }
  // The same until a deadline: false if it has passed first.
  [[nodiscard]] bool wait(Deadline deadline, WaitPolicy policy = {}) const {
    if (!completion_.wait(deadline, policy)) return false;
    detail::finish_host_duties();
    return true;
  }
  // True once complete. Never waits, and makes no call; but finds bytes that have to be copied to pageable memory by the host, if any, and copies them. Throws Error if the queue
  // has failed.
  bool ready() const {
    if (!completion_.ready()) return false;
    detail::finish_host_duties();
    return true;
  }

  // For coroutines and descriptors (awaitable.hpp, notifier.hpp).
  const Completion& completion() const noexcept { return completion_; }

 private:
  friend class Stream;
  friend class detail::StreamQueue;
  friend class detail::CopyLane;
  Event(detail::SignalSource& track, Completion completion, hsa_agent_t writer = {}) noexcept
      : completion_(completion), source_(&track), writer_(writer) {}

  Completion completion_;
  detail::SignalSource* source_ = nullptr;  // null: complete; may have gone when the event is complete
  hsa_agent_t writer_{};            // whose packets alone wrote what the event covers; null: others did, too
  bool behind_host_ = false;        // it may depend on what only the host can do
};

}  // namespace uptempo
