// Event: a point in the work of a stream, created by Stream::record(). TimedEvent: the same, with
// its completion time.
//
//   const Event ready = upload.record();
//   compute.after(ready);       // later work on `compute` begins after it
//   ready.wait();               // the host waits
//
//   TimedEvent begin, end;
//   stream.record(begin);
//   stream.launch(...);
//   stream.record(end);
//   end.wait();
//   const std::chrono::nanoseconds took = elapsed(begin, end);
//
// Complete means that all earlier work of the stream is complete and its writes are visible to the
// host, to copies and to all work that waits for the event. An event that was never recorded is
// complete. To record again, assign: `ready = upload.record()`.
//
// Thread safety: as for an int. While no thread assigns to it, all functions may be called from any
// thread.
// Lifetime: an Event owns nothing, and copies are free; copies of a TimedEvent share its time. Both
// may outlive their stream, its Streams and the Runtime; they are then complete, or failed with
// their queue. The host may wait for them while those are destroyed; streams.hpp lists other calls
// that are permitted then.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include <uptempo/completion/completion.hpp>

namespace uptempo {

namespace detail {

class StreamQueue;
class CopyLane;
class EventTime;

// Entries of the list in copy/retired.hpp, and those for which bytes are to be copied.
inline constinit std::atomic<uint32_t> retired_entries{0}, owed_host_copies{0};
void release_all_retired() noexcept;
void copy_all_owed_bytes() noexcept;

// After this call, everything that is complete on the device is also complete for the host.
inline void release_retired() noexcept {
  // Acquire: a thread that has observed a copy's completion also sees its entry.
  if (retired_entries.load(std::memory_order_acquire) != 0) [[unlikely]]
    release_all_retired();
}
// The same without a call of HSA: memory stays pinned and allocated.
inline void copy_owed_bytes() noexcept {
  if (owed_host_copies.load(std::memory_order_acquire) != 0) [[unlikely]]
    copy_all_owed_bytes();
}

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
      : completion_(completion), written_by_(writer) {}
  static constexpr hsa_agent_t kNobody{UINT64_MAX - 1};

  Completion completion_;
  // The agent whose packets made all writes that the event covers. Null: others wrote, too.
  // kNobody: it covers none, because it was never recorded.
  hsa_agent_t written_by_ = kNobody;
  bool behind_host_ = false;  // completion may depend on an action of the host
};

// An event with the device's time at which its marker completed. If the stream had no unfinished
// work, there is no marker, and it is the host's time of the call. Both use the system clock
// domain, so events of different streams, queues and agents are comparable. Recording again
// discards the earlier recording, complete or not.
//
// Lifetime: recorded times stay readable after stream, Streams and Runtime are destroyed, unless
// the work was lost.
// Cost: construction allocates. Recording does not, once a queue has recorded as many as it has
// markers.
class TimedEvent : public Event {
 public:
  TimedEvent();
  // Copies, no moves: a moved-from object would have no storage for its time.
  TimedEvent(const TimedEvent&) noexcept = default;
  TimedEvent& operator=(const TimedEvent&) noexcept = default;

  // Returns nanoseconds of the system clock domain. Throws Error if the event was never recorded,
  // is not complete, or was lost with its queue.
  uint64_t ns() const;

 private:
  friend class Stream;
  std::shared_ptr<detail::EventTime> time_;
};

// Negative if `end` completed first. Throws Error like TimedEvent::ns().
inline std::chrono::nanoseconds elapsed(const TimedEvent& begin, const TimedEvent& end) {
  return std::chrono::nanoseconds(static_cast<int64_t>(end.ns() - begin.ns()));
}

}  // namespace uptempo
