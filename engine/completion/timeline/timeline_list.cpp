#include "engine/completion/timeline/timeline_list.hpp"

#include <algorithm>

namespace uptempo::detail {

TimelineList& TimelineList::of_process() {
  static TimelineList* const instance = new TimelineList;
  return *instance;
}

Timeline& TimelineList::take(uint32_t capacity) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(free_, capacity, &Timeline::capacity);
  if (found == free_.end()) {
    // Room for all, because give_back() runs in destructors.
    if (free_.capacity() <= all_.size()) free_.reserve(2 * all_.size() + 1);
    return *all_.emplace_back(std::unique_ptr<Timeline>(new Timeline(capacity)));
  }
  Timeline& timeline = **found;
  free_.erase(found);
  return timeline;
}

void TimelineList::give_back(Timeline& timeline) noexcept {
  const std::lock_guard lock(mutex_);
  free_.push_back(&timeline);
}

Timeline::Census TimelineList::census() const {
  const std::lock_guard lock(mutex_);
  return {.all = all_.size(), .free = free_.size()};
}

}  // namespace uptempo::detail
