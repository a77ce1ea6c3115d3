#include "tools/support/interrupt.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string_view>

namespace uptempo::support {
namespace {

// A process has one disposition of a signal, and its handler can reach globals only.
std::atomic<int> arrived{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may take no lock");
int watches = 0;  // that live

void on_signal(int signal) {
  const int saved = errno;
  int none = 0;
  // relaxed: nothing else is published by it
  if (arrived.compare_exchange_strong(none, signal, std::memory_order_relaxed)) {
    constexpr std::string_view kNote =
        "\ninterrupted; stopping after the current round (again: end at once)\n";
    if (write(STDERR_FILENO, kNote.data(), kNote.size()) < 0) {
      // Without stderr there is no one to tell.
    }
  } else {
    ::signal(signal, SIG_DFL);
    raise(signal);  // delivered when this handler returns
  }
  errno = saved;
}

}  // namespace

InterruptWatch::InterruptWatch() {
  if (watches++ > 0) return;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // ROCr and the program's other threads do not expect EINTR
  for (Watched& each : watched_) {
    if (sigaction(each.signal, nullptr, &each.before) != 0 || each.before.sa_handler == SIG_IGN)
      continue;
    each.installed = sigaction(each.signal, &action, nullptr) == 0;
  }
}

InterruptWatch::~InterruptWatch() {
  --watches;
  for (const Watched& each : watched_)
    if (each.installed) sigaction(each.signal, &each.before, nullptr);
}

bool interrupted() noexcept { return interrupting_signal() != 0; }

int interrupting_signal() noexcept { return arrived.load(std::memory_order_relaxed); }

}  // namespace uptempo::support
