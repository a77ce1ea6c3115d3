#include "engine/stream/queue/marker_times.hpp"

namespace uptempo::detail {

void MarkerTimes::begin(uint64_t epoch, const std::shared_ptr<EventTime>& time) {
  const std::lock_guard lock(mutex_);
  Marker& marker = markers_[timeline_.place(epoch)];
  marker.wanted.clear();
  marker.wanted.push_back(time);
  marker.epoch = epoch;
  marker.ns.reset();
  time->expect(timeline_, epoch);
}

void MarkerTimes::share(uint64_t epoch, const std::shared_ptr<EventTime>& time) {
  const std::lock_guard lock(mutex_);
  Marker& marker = markers_[timeline_.place(epoch)];
  if (!marker.ns) marker.wanted.push_back(time);
  time->expect(timeline_, epoch);
  if (marker.ns) time->set(timeline_, epoch, *marker.ns);
}

void MarkerTimes::set(uint64_t epoch, uint64_t ns) {
  const std::lock_guard lock(mutex_);
  Marker& marker = markers_[timeline_.place(epoch)];
  marker.ns = ns;
  for (const std::shared_ptr<EventTime>& wanted : marker.wanted) wanted->set(timeline_, epoch, ns);
  marker.wanted.clear();
}

}  // namespace uptempo::detail
