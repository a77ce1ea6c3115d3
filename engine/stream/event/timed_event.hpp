// TimedEvent: an event that also tells when it was reached.
//
//   TimedEvent begin, end;
//   stream.record(begin);
//   stream.launch(...);
//   stream.record(end);
//   end.wait();
//   const std::chrono::nanoseconds took = elapsed(begin, end);
//
// The time is that of the device, when the marker was complete; where the stream had nothing unfinished there is no marker, and it is that of the host at the call. Both
// are in the system's domain, so that events of different streams, queues and agents compare.
//
// Recording again begins anew: what was recorded before is forgotten, and need not be complete. The first timed event of a hardware queue turns its timestamps on, which are a
// write more for the device at each packet with a signal.
//
// Thread safety: as Event. Lifetime: what it has recorded stays readable after its stream, its Streams and the Runtime have gone, unless the work was lost. Making one allocates;
// recording does not, once a queue has recorded as many as it has markers.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/stream/event/event.hpp"

namespace uptempo {

namespace detail {

// When a TimedEvent was reached; filled by the queue that has the marker, at the latest before its signal is used again.
class EventTime {
 public:
  // Of an epoch that is to come; of another one nothing is taken any more.
  void expect(const Timeline& timeline, uint64_t epoch);
  void set(const Timeline& timeline, uint64_t epoch, uint64_t ns);
  void set(uint64_t ns);
  // Empty if it has not been set.
  std::optional<uint64_t> ns() const;

 private:
  mutable std::mutex mutex_;
  const Timeline* timeline_ = nullptr;
  uint64_t epoch_ = 0;
  std::optional<uint64_t> ns_;
};

}  // namespace detail

class TimedEvent {
 public:
  TimedEvent() : time_(std::make_shared<detail::EventTime>()) {}
  TimedEvent(const TimedEvent&) noexcept =
      default;  // no move: what was moved from would have no place for its time
  TimedEvent& operator=(const TimedEvent&) noexcept = default;

  // Complete if it was never recorded.
  const Event& event() const noexcept { return event_; }
  operator const Event&() const noexcept { return event_; }
  void wait(WaitPolicy policy = {}) const { event_.wait(policy); }
  [[nodiscard]] bool wait(Deadline deadline, WaitPolicy policy = {}) const {
    return event_.wait(deadline, policy);
  }
  bool ready() const { return event_.ready(); }

  // Nanoseconds of the system's monotonic domain. Throws Error if it was never recorded, is not complete, or was lost with its queue.
  uint64_t ns() const;

 private:
  friend class Stream;
  Event event_;
  std::shared_ptr<detail::EventTime> time_;
};

// Negative if `end` was reached first. Throws Error as TimedEvent::ns().
inline std::chrono::nanoseconds elapsed(const TimedEvent& begin, const TimedEvent& end) {
  return std::chrono::nanoseconds(static_cast<int64_t>(end.ns() - begin.ns()));
}

}  // namespace uptempo
