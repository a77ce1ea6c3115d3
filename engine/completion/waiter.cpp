#include <uptempo/completion/waiter.hpp>

#include <fmt/format.h>

#include <utility>

#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/say.hpp>

namespace uptempo::detail {

bool Waiter::wait(const Completion& next) noexcept {
  constexpr std::chrono::nanoseconds kKnown{-1};
  if (const auto patience = std::exchange(patience_, kKnown); patience != kKnown)
    if (const Deadline ends = Deadline::after(patience); ends.when() < deadline_.when())
      *this = Waiter(ends);
  Timeline* const timeline = timeline_of(next);
  if (timeline == nullptr || next.value() > timeline->last_begun() ||
      timeline->is_done(next.value()) || timeline->failed())
    return pause_.wait();
  if (deadline_.passed()) return false;
  timeline->wait(next.value(), {}, deadline_);
  pause_ = aql::Pause(deadline_);
  return true;
}

void say_waiting(Timeline& timeline, Deadline deadline,
                 const std::function<std::string()>& name) noexcept {
  say([&] {
    const std::string unfinished = timeline.describe_unfinished();
    std::string limit;
    if (!deadline.is_never()) {
      const std::chrono::duration<double> left = deadline.when() - Deadline::Clock::now();
      limit = fmt::format(", for {:.1f} s more at most,", std::max(left.count(), 0.0));
    }
    return fmt::format("the destruction of {} waits{} for {}", name(), limit,
                       unfinished.empty() ? "its unfinished work" : unfinished);
  });
}

WaitResult wait_for_end(Timeline& timeline, uint64_t value, Deadline deadline,
                        const std::function<std::string()>& name) noexcept {
  const Deadline silent = Deadline::after(kSilentWait);
  if (deadline.when() <= silent.when()) return timeline.wait(value, {}, deadline);
  const WaitResult result = timeline.wait(value, {}, silent);
  if (result != WaitResult::timed_out) return result;
  say_waiting(timeline, deadline, name);
  return timeline.wait(value, {}, deadline);
}

}  // namespace uptempo::detail
