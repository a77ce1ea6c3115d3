#include <algorithm>

#include "engine/completion/detail/uses.hpp"
#include "engine/completion/timeline.hpp"

namespace uptempo::detail {

void Uses::expect(size_t queues) {
  const size_t needed = last_.size() + queues;
  if (needed > last_.capacity()) last_.reserve(2 * needed);
}

void Uses::add(const Completion& use) noexcept {
  const auto same = std::ranges::find(last_, timeline_of(use), timeline_of);
  if (same == last_.end()) {
    last_.push_back(use);
  } else if (same->value() < use.value()) {
    *same = use;
  }
}

bool Uses::includes(const Timeline& queue) const noexcept {
  return std::ranges::find(last_, &queue, timeline_of) != last_.end();
}

bool Uses::are_over() const noexcept { return std::ranges::all_of(last_, is_done); }

std::optional<Completion> Uses::unfinished() const noexcept {
  const auto found = std::ranges::find(last_, false, is_done);
  return found == last_.end() ? std::nullopt : std::optional(*found);
}

}  // namespace uptempo::detail
