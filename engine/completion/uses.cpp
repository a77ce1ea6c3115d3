#include <algorithm>

#include <uptempo/completion/detail/uses.hpp>
#include <uptempo/completion/timeline.hpp>

namespace uptempo::detail {

void Uses::expect(size_t queues) {
  const size_t needed = last_.size() + queues;
  if (needed > last_.capacity()) last_.reserve(2 * needed);
}

bool Uses::are_over() const noexcept { return std::ranges::all_of(last_, is_done); }

std::optional<Completion> Uses::unfinished() const noexcept {
  const auto found = std::ranges::find(last_, false, is_done);
  return found == last_.end() ? std::nullopt : std::optional(*found);
}

}  // namespace uptempo::detail
