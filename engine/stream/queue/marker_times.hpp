// When markers of a hardware queue were reached, and the TimedEvents that want to know. Private to engine/stream.
//
// A marker is timed where somebody asks for it, and whoever asks for the same epoch shares its time. The time is read from the marker's signal when somebody wants to know it, at the
// latest before the signal is used again.
//
// Thread safety: begin() and has() under the lock of the queue, the others from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/completion/timeline.hpp"
#include "engine/stream/event/timed_event.hpp"

namespace uptempo::detail {

class MarkerTimes {
 public:
  explicit MarkerTimes(const Timeline& timeline) : timeline_(timeline), markers_(timeline.places()) {}

  // The marker of that epoch is timed. Forgets the one that had its place.
  void begin(uint64_t epoch);
  bool has(uint64_t epoch) const noexcept { return markers_[timeline_.place(epoch)].epoch == epoch; }
  // `time` is that of a timed marker: set at once where it is known, else when it is.
  void share(uint64_t epoch, const std::shared_ptr<EventTime>& time);
  void set(uint64_t epoch, uint64_t ns);

 private:
  struct Marker {
    uint64_t epoch = 0;
    std::optional<uint64_t> ns{};  // when it is known
    std::vector<std::shared_ptr<EventTime>> wanted{};
  };

  const Timeline& timeline_;
  std::mutex mutex_;             // of what follows; taken last
  std::vector<Marker> markers_;  // by place
};

}  // namespace uptempo::detail
