// TimelineList: all timelines of the process. A queue takes a free one and returns it. Private to
// Timeline.
//
// Lifetime: neither the list nor a timeline is ever freed, because Completions are plain values
// that may outlive every other object.
// Thread safety: every function may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/completion/timeline.hpp"

namespace uptempo::detail {

class TimelineList {
 public:
  static TimelineList& of_process();

  // Returns a free timeline of exactly this capacity, or a new one.
  Timeline& take(uint32_t capacity);
  void give_back(Timeline& timeline) noexcept;
  Timeline::Census census() const;

 private:
  TimelineList() = default;

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Timeline>> all_;
  std::vector<Timeline*> free_;
};

}  // namespace uptempo::detail
