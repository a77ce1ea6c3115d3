// TimedEvent: an event with its completion time.
//
//   TimedEvent begin, end;
//   stream.record(begin);
//   stream.launch(...);
//   stream.record(end);
//   end.wait();
//   const std::chrono::nanoseconds took = elapsed(begin, end);
//
// The time is the device's time at which the marker completed. If the stream had no unfinished
// work, there is no marker, and it is the host's time of the call. Both use the system clock
// domain, so events of different streams, queues and agents are comparable.
//
// Recording again discards the earlier recording, complete or not.
//
// Thread safety: as Event.
// Lifetime: recorded times stay readable after stream, Streams and Runtime are destroyed, unless
// the work was lost.
// Cost: construction allocates. Recording does not, once a queue has recorded as many as it has
// markers.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "engine/stream/event/event.hpp"

namespace uptempo {

namespace detail {
class EventTime;
}

class TimedEvent {
 public:
  TimedEvent();
  // Copies, no moves: a moved-from object would have no storage for its time.
  TimedEvent(const TimedEvent&) noexcept = default;
  TimedEvent& operator=(const TimedEvent&) noexcept = default;

  // Complete if it was never recorded.
  const Event& event() const noexcept { return event_; }
  operator const Event&() const noexcept { return event_; }
  void wait(WaitPolicy policy = {}) const { event_.wait(policy); }
  [[nodiscard]] bool wait(Deadline deadline, WaitPolicy policy = {}) const {
    return event_.wait(deadline, policy);
  }
  bool ready() const { return event_.ready(); }

  // Returns nanoseconds of the system clock domain. Throws Error if the event was never recorded,
  // is not complete, or was lost with its queue.
  uint64_t ns() const;

 private:
  friend class Stream;
  Event event_;
  std::shared_ptr<detail::EventTime> time_;
};

// Negative if `end` completed first. Throws Error like TimedEvent::ns().
inline std::chrono::nanoseconds elapsed(const TimedEvent& begin, const TimedEvent& end) {
  return std::chrono::nanoseconds(static_cast<int64_t>(end.ns() - begin.ns()));
}

}  // namespace uptempo
