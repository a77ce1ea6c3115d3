// Event: a point in the work of a stream, created by Stream::record().
//
//   const Event ready = upload.record();
//   compute.wait(ready);        // later work on `compute` begins after it
//   ready.wait();               // the host waits
//
// Complete means that all earlier work of the stream is complete and its writes are visible to the
// host, to copies and to all work that waits for the event. An event that was never recorded is
// complete. To record again, assign: `ready = upload.record()`.
//
// Thread safety: as for an int. While no thread assigns to it, all functions may be called from any
// thread.
// Lifetime: a value that owns nothing; copies are free. It may outlive its stream, its Streams and
// the Runtime; it is then complete, or failed with its queue. The host may wait for it while they
// are destroyed; streams.hpp lists other calls that are permitted then.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>

#include "engine/completion/completion.hpp"
#include "engine/stream/event/detail/retired_counts.hpp"

namespace uptempo {

namespace detail {
class StreamQueue;
class CopyLane;
}  // namespace detail

class Event {
 public:
  Event() = default;

  // Blocks until complete. Throws Error if the queue has failed, with the queue's error.
  void wait(WaitPolicy policy = {}) const {
    completion_.wait(policy);
    detail::release_retired();
  }
  // The same with a deadline. Returns false if the deadline passes first.
  [[nodiscard]] bool wait(Deadline deadline, WaitPolicy policy = {}) const {
    if (!completion_.wait(deadline, policy)) return false;
    detail::release_retired();
    return true;
  }
  // Returns true once complete. Makes no call of HSA, and no other call unless the queue has failed
  // or copies to pageable memory are pending in the process: then it copies the bytes that the host
  // still owes, under a lock that another thread may hold meanwhile for the same purpose. Pageable
  // memory that was pinned for a copy stays pinned until the next wait() or synchronize(), or the
  // next copy of pageable memory: call one of these before you unmap it. Throws Error if the queue
  // has failed.
  bool ready() const {
    if (!completion_.ready()) return false;
    detail::copy_owed_bytes();
    return true;
  }

  // For coroutines and descriptors (awaitable.hpp, notifier.hpp).
  const Completion& completion() const noexcept { return completion_; }

 private:
  friend class Stream;
  friend class detail::StreamQueue;
  friend class detail::CopyLane;
  explicit Event(const Completion& completion, hsa_agent_t writer = {}) noexcept
      : completion_(completion), writer_(writer) {}
  static constexpr hsa_agent_t kNobody{UINT64_MAX - 1};

  Completion completion_;
  // The agent whose packets made all writes that the event covers. Null: others wrote, too.
  // kNobody: it covers none, because it was never recorded.
  hsa_agent_t writer_ = kNobody;
  bool behind_host_ = false;  // completion may depend on an action of the host
};

}  // namespace uptempo
