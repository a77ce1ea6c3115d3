// Writing to files, pipes and devices that the user names, in any process: no signal ends the
// process, and no call waits for ever for a reader that does not exist.
//
// Thread safety: any thread.
// Sources: POSIX.1-2017, open() of a FIFO, write() (EFBIG, EPIPE); Linux sends SIGPIPE and SIGXFSZ
// of a write() to the calling thread.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <initializer_list>
#include <string>
#include <string_view>

namespace uptempo::aql {

// The longest wait for a reader: for one that opens the pipe, or makes room in a full one that does
// not block.
inline constexpr int kReaderWaitMs = 2000;

// open(2) for writing, with O_CLOEXEC. A FIFO without a reader is ENXIO after kReaderWaitMs.
// Returns a descriptor that blocks, or -1 with errno.
inline int open_output(const char* path, int flags, mode_t mode = 0666) noexcept {
  constexpr int kStepMs = 10;
  constexpr timespec kStep{.tv_sec = 0, .tv_nsec = kStepMs * 1'000'000};
  int file = -1;
  for (int waited = 0; file < 0; waited += kStepMs) {
    file = open(path, flags | O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
    if (file >= 0) break;
    const int error = errno;
    struct stat status {};
    const bool may_come = error == ENXIO && waited < kReaderWaitMs && stat(path, &status) == 0 &&
                          S_ISFIFO(status.st_mode);
    if (may_come) nanosleep(&kStep, nullptr);
    errno = error;
    if (!may_come && error != EINTR) return -1;
  }
  if (const int now = fcntl(file, F_GETFL); now >= 0) (void)fcntl(file, F_SETFL, now & ~O_NONBLOCK);
  return file;
}

// Returns the result of `call`: 0 or an error's number. EPIPE raises no SIGPIPE, EFBIG no SIGXFSZ.
template <class Call>
int without_signals(Call&& call) noexcept {
  sigset_t held, before, pending;
  for (sigset_t* const set : {&held, &before, &pending}) sigemptyset(set);
  sigaddset(&held, SIGPIPE);
  sigaddset(&held, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &held, &before);
  // A signal that was sent before this call stays.
  if (sigismember(&before, SIGPIPE) == 1 || sigismember(&before, SIGXFSZ) == 1)
    sigpending(&pending);
  const int error = call();
  const int raised = error == EPIPE ? SIGPIPE : error == EFBIG ? SIGXFSZ : 0;
  if (raised != 0 && sigismember(&pending, raised) == 0) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, raised);
    constexpr timespec kNow{};
    (void)sigtimedwait(&one, nullptr, &kNow);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

// Writes all of `bytes`. Returns 0 or the error's number, as without_signals(). Blocks as write(2);
// a descriptor that does not block gets kReaderWaitMs for each step.
inline int write_all(int file, std::string_view bytes) noexcept {
  return without_signals([file, &bytes] {
    while (!bytes.empty()) {
      const ssize_t written = write(file, bytes.data(), bytes.size());
      if (written > 0) {
        bytes.remove_prefix(static_cast<size_t>(written));
      } else if (written == 0) {
        return EIO;
      } else if (errno == EAGAIN) {
        pollfd ready{.fd = file, .events = POLLOUT, .revents = 0};
        if (poll(&ready, 1, kReaderWaitMs) == 0) return EAGAIN;
      } else if (errno != EINTR) {
        return errno;
      }
    }
    return 0;
  });
}

// The text of an error's number, for example "No space left on device". Names the file size limit.
inline std::string write_error(int error) {
  std::string text = std::strerror(error);
  rlimit limit{};
  if (error == EFBIG && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    text += ": the file size limit (ulimit -f) is " + std::to_string(limit.rlim_cur) + " bytes";
  if (error == ENXIO) text += ": no process reads it";
  return text;
}

}  // namespace uptempo::aql
