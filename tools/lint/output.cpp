#include "tools/lint/output.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

namespace uptempo::lint {

int write_all(int file, std::string_view text) noexcept {
  sigset_t pipe, before, pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigpending(&pending);
  const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  int error = 0;
  while (error == 0 && !text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written > 0)
      text.remove_prefix(static_cast<size_t>(written));
    else if (written == 0 || errno != EINTR)
      error = written == 0 ? EIO : errno;
  }
  // write() sends the signal to its own thread.
  constexpr timespec kNow{};
  if (error == EPIPE && !was_pending) sigtimedwait(&pipe, nullptr, &kNow);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

}  // namespace uptempo::lint
