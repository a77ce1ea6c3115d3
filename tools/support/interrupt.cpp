#include "tools/support/interrupt.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string_view>

namespace uptempo::support {
namespace {

// A process has one disposition of SIGINT, and its handler can reach globals only.
std::atomic<bool> signalled{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may take no lock");

void on_signal(int) {
  const int saved = errno;
  signalled.store(true, std::memory_order_relaxed);  // nothing else is published by it
  constexpr std::string_view kNote =
      "\ninterrupted; stopping after the current round (again: end at once)\n";
  if (write(STDERR_FILENO, kNote.data(), kNote.size()) < 0) {
    // Without stderr there is no one to tell.
  }
  errno = saved;
}

}  // namespace

InterruptWatch::InterruptWatch() {
  if (interrupted()) return;  // the next SIGINT ends the program
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  // ROCr and the program's other threads do not expect EINTR.
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  if (sigaction(SIGINT, nullptr, &before_) != 0 || before_.sa_handler == SIG_IGN) return;
  installed_ = sigaction(SIGINT, &action, nullptr) == 0;
}

InterruptWatch::~InterruptWatch() {
  if (installed_) sigaction(SIGINT, &before_, nullptr);
}

bool interrupted() noexcept { return signalled.load(std::memory_order_relaxed); }

}  // namespace uptempo::support
