// SIGINT (Ctrl-C) and SIGTERM during a measurement: the program stops at the next good moment,
// reports what it has measured, and returns 128 + the signal's number.
#pragma once

#include <array>
#include <csignal>
#include <stdexcept>

namespace uptempo::support {

// While an object lives, the first SIGINT or SIGTERM sets interrupted() and says so on stderr. A
// second one ends the program, as it does without a watch. Has no effect on a signal that is
// ignored, nor while another watch lives.
// Thread safety: one thread at a time.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  struct Watched {
    int signal;
    bool installed = false;
    struct sigaction before {};
  };
  std::array<Watched, 2> watched_{Watched{SIGINT}, Watched{SIGTERM}};
};

// Whether one of the signals has arrived while a watch lived. Thread safety: any thread.
bool interrupted() noexcept;
// Its number; 0 if none has arrived. Thread safety: any thread.
int interrupting_signal() noexcept;

// Work that was not done because interrupted() is true.
struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace uptempo::support
