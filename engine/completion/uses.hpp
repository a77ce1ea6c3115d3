// Uses: the last publication of each queue that uses a resource. The resource is free when all of
// them are complete. Private to the engine.
//
// Thread safety: thread-compatible.
// Cost: one entry for each queue that has ever used the resource; queues are few.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "engine/completion/completion.hpp"
#include "engine/completion/timeline.hpp"

namespace uptempo::detail {

class Uses {
 public:
  // Makes room for uses by so many more queues. Throws std::bad_alloc.
  void expect(size_t queues) {
    const size_t needed = last_.size() + queues;
    if (needed > last_.capacity()) last_.reserve(2 * needed);
  }
  // The publication, which may not have begun yet, uses the resource, too. Requires room, unless
  // its queue has used the resource before.
  void add(const Completion& use) noexcept {
    const auto same = std::ranges::find(last_, timeline_of(use), timeline_of);
    if (same == last_.end()) {
      last_.push_back(use);
    } else if (same->value() < use.value()) {
      *same = use;
    }
  }
  bool includes(const Timeline& timeline) const noexcept {
    return std::ranges::find(last_, &timeline, timeline_of) != last_.end();
  }
  // Never true if one of the publications is lost.
  bool are_over() const noexcept { return std::ranges::all_of(last_, is_done); }
  std::optional<Completion> unfinished() const noexcept {
    const auto found = std::ranges::find(last_, false, is_done);
    return found == last_.end() ? std::nullopt : std::optional(*found);
  }
  // One use for each queue.
  const std::vector<Completion>& each() const noexcept { return last_; }
  void clear() noexcept { last_.clear(); }

 private:
  std::vector<Completion> last_;
};

}  // namespace uptempo::detail
