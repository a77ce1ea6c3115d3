#include "engine/completion/waiter.hpp"

#include <utility>

#include "engine/completion/timeline.hpp"

namespace uptempo::detail {

bool Waiter::wait(const Completion& next) noexcept {
  constexpr std::chrono::nanoseconds kKnown{-1};
  if (const auto patience = std::exchange(patience_, kKnown); patience != kKnown)
    *this = Waiter(Deadline::after(patience));
  Timeline* const timeline = timeline_of(next);
  if (timeline == nullptr || next.value() > timeline->last_begun() ||
      timeline->is_done(next.value()) || timeline->failed())
    return pause_.wait();
  if (deadline_.passed()) return false;
  timeline->wait(next.value(), {}, deadline_);
  pause_ = aql::Pause(deadline_);
  return true;
}

}  // namespace uptempo::detail
