// CompletionNotifier makes a file descriptor readable when completions finish, for programs that
// sleep in poll, epoll or io_uring.
//
//   CompletionNotifier notifier{queues * 64};
//   notifier.watch(batch.submit(), request.number());
//   epoll_ctl(epoll, EPOLL_CTL_ADD, notifier.fd(), ...);
//   ...                                                   // readable:
//   uint64_t count;
//   read(notifier.fd(), &count, sizeof count);
//   while (const auto notice = notifier.take()) finish(notice->tag, notice->failed);
//
// A watched completion becomes a notice when its publication has completed or failed. For a failed
// one, `failed` is set and its completion's ready() throws the Error. Notices of one queue arrive
// in order.
//
// The descriptor is an eventfd. The notifier writes it when a notice arrives after a take() that
// found none: many completions cause one write. Read the descriptor first, then take until there is
// no notice; otherwise the descriptor is not written again.
//
// Back-pressure: at most `capacity` completions may be watched or not yet taken. Beyond that,
// try_watch() returns false and watch() throws.
// Thread safety: every function except the destructor may be called from any thread.
// Lifetime: the destructor drops all watched completions and waits while the completion thread
// writes the descriptor. Queues and the Runtime may be destroyed first; their unfinished
// publications become failed notices.
// Cost: watching takes a lock and allocates nothing. Unwatched publications cost nothing. One
// thread of the process serves all notifiers (completion_thread.hpp). It starts at the first
// watch(), sleeps while nothing is pending, and handles all finished completions at each wake-up.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include <uptempo/completion/completion.hpp>

namespace uptempo {

namespace detail {
struct Awaited;
}

class CompletionNotifier {
 public:
  struct Notice {
    Completion completion;
    uint64_t tag = 0;
    bool failed = false;
  };

  // Creates its own non-blocking eventfd and closes it in the destructor. Throws Error if none is
  // available.
  // With `eventfd`, uses that of the caller instead, which must outlive the notifier. Notifications
  // add 1 to it.
  explicit CompletionNotifier(uint32_t capacity, std::optional<int> eventfd = {});
  ~CompletionNotifier();
  CompletionNotifier(const CompletionNotifier&) = delete;
  CompletionNotifier& operator=(const CompletionNotifier&) = delete;

  int fd() const noexcept { return fd_; }

  // Throws Error if `capacity` completions are watched or not yet taken.
  void watch(const Completion& completion, uint64_t tag = 0);
  // Like watch(), but returns false instead of throwing that Error.
  [[nodiscard]] bool try_watch(const Completion& completion, uint64_t tag = 0);
  // Returns the oldest notice, if any.
  std::optional<Notice> take() noexcept;

  // Number of watched completions that have not finished.
  uint32_t pending() const noexcept;
  uint32_t capacity() const noexcept { return capacity_; }

 private:
  struct Slot;
  static void on_finished(detail::Awaited& awaited) noexcept;
  void put(Slot& slot) noexcept;

  const uint32_t capacity_;
  std::unique_ptr<Slot[]> slots_;
  const bool owns_fd_;
  const int fd_;

  mutable std::mutex mutex_;
  std::condition_variable idle_;
  Slot* free_ = nullptr;
  Slot* oldest_ = nullptr;
  Slot* newest_ = nullptr;
  uint32_t pending_ = 0;
  bool armed_ = true;  // write the descriptor at the next notice
};

}  // namespace uptempo
