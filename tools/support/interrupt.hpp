// Ctrl-C during a measurement: the program stops at the next good moment, reports what it has
// measured, and returns 130 (128 + SIGINT).
#pragma once

#include <csignal>

namespace uptempo::support {

// While an object lives, the first SIGINT sets interrupted() and says so on stderr. A second one
// ends the program, as SIGINT does without a watch. Has no effect if SIGINT is ignored.
// Thread safety: one thread at a time.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  struct sigaction before_ {};
  bool installed_ = false;
};

// Whether SIGINT has arrived while a watch lived. Thread safety: any thread.
bool interrupted() noexcept;

}  // namespace uptempo::support
