// Waits of calls for resources, and of destructors for unfinished work. Private to the engine. No
// lock is held during a wait.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>

#include <uptempo/aql/pause.hpp>
#include <uptempo/completion/timeline.hpp>

namespace uptempo::detail {

// How a call waits for a resource that completed work returns, up to a deadline.
//
//   for (Waiter waiter(patience); !try_take();)
//     if (!waiter.wait(oldest)) throw_exhausted();
//
// Thread safety: thread-compatible.
// Cost: the clock is not read before the first wait.
class Waiter {
 public:
  explicit Waiter(Deadline deadline) noexcept : deadline_(deadline), pause_(deadline) {}
  // The deadline is `patience` after the first wait, but not later than `latest`.
  explicit Waiter(std::chrono::nanoseconds patience, Deadline latest = Deadline::never()) noexcept
      : Waiter(latest) {
    patience_ = std::max(patience, std::chrono::nanoseconds::zero());
  }

  // Blocks until the publication has ended. If it has already, if it has not begun, or if it is the
  // empty Completion, waits for a moment only: another thread is about to return the resource.
  // Returns false at once if the deadline has passed.
  bool wait(const Completion& next = {}) noexcept;

 private:
  std::chrono::nanoseconds patience_{-1};  // negative: deadline_ is final
  Deadline deadline_;
  aql::Pause pause_;
};

// Time for which a destructor waits without a message.
inline constexpr std::chrono::seconds kSilentWait{1};

// Writes on stderr what the timeline's queue has not finished, and when the wait ends. `name`
// returns the name of what is being destroyed. Any thread.
void say_waiting(Timeline& timeline, Deadline deadline,
                 const std::function<std::string()>& name) noexcept;
// As Timeline::wait(), with that message after kSilentWait.
WaitResult wait_for_end(Timeline& timeline, uint64_t value, Deadline deadline,
                        const std::function<std::string()>& name) noexcept;

}  // namespace uptempo::detail
