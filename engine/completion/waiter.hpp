// Waiter: how a call waits for a resource that completed work returns, up to a deadline.
//
//   for (Waiter waiter(patience); !try_take();)
//     if (!waiter.wait(oldest)) throw_exhausted();
//
// Thread safety: thread-compatible. No lock is held during a wait.
// Cost: the clock is not read before the first wait.
#pragma once

#include <algorithm>
#include <chrono>

#include "aql/deadline.hpp"
#include "aql/pause.hpp"
#include "engine/completion/completion.hpp"

namespace uptempo::detail {

class Waiter {
 public:
  explicit Waiter(Deadline deadline) noexcept : deadline_(deadline), pause_(deadline) {}
  // The deadline is `patience` after the first wait.
  explicit Waiter(std::chrono::nanoseconds patience) noexcept : Waiter(Deadline::never()) {
    patience_ = std::max(patience, std::chrono::nanoseconds::zero());
  }

  // Blocks until the publication has ended. If it has already, if it has not begun, or if it is the
  // empty Completion, waits for a moment only: another thread is about to return the resource.
  // Returns false at once if the deadline has passed.
  bool wait(const Completion& next = {}) noexcept;

 private:
  std::chrono::nanoseconds patience_{-1};  // negative: the deadline is known
  Deadline deadline_;
  aql::Pause pause_;
};

}  // namespace uptempo::detail
