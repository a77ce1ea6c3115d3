// MarkerTimes: the completion times of a hardware queue's markers, and the TimedEvents that want
// them. Private to engine/stream.
//
// A marker is timed on request; later requests for the same epoch share its time. The time is read
// from the marker's signal on demand, at the latest before the signal is reused.
//
// Thread safety: begin() and has() require the queue's lock; other functions may be called from any
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/completion/timeline.hpp"
#include "engine/stream/event/event_time.hpp"

namespace uptempo::detail {

class MarkerTimes {
 public:
  explicit MarkerTimes(const Timeline& timeline)
      : timeline_(timeline), markers_(timeline.places()) {}

  // Sets `time` to the time of the epoch's marker once it is known. Replaces the marker that used
  // the same place. Call before the marker is published. Throws std::bad_alloc and changes nothing.
  void begin(uint64_t epoch, const std::shared_ptr<EventTime>& time);
  bool has(uint64_t epoch) const noexcept {
    return markers_[timeline_.place(epoch)].epoch == epoch;
  }
  // Sets `time`, which belongs to a timed marker, at once if the marker's time is known, otherwise
  // later. Throws std::bad_alloc and changes nothing.
  void share(uint64_t epoch, const std::shared_ptr<EventTime>& time);
  void set(uint64_t epoch, uint64_t ns);

 private:
  struct Marker {
    uint64_t epoch = 0;
    std::optional<uint64_t> ns{};  // set once known
    std::vector<std::shared_ptr<EventTime>> wanted{};
  };

  const Timeline& timeline_;
  std::mutex mutex_;             // protects the members below; locked last
  std::vector<Marker> markers_;  // by place
};

}  // namespace uptempo::detail
