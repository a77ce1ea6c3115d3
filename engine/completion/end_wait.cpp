#include "engine/completion/end_wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "engine/runtime/say.hpp"

namespace uptempo::detail {

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
