// CompletionNotifier: completions that make a file descriptor readable, for programs that sleep in poll, epoll or io_uring.
//
//   CompletionNotifier notifier{queues * 64};
//   notifier.watch(batch.submit(), request.number());
//   epoll_ctl(epoll, EPOLL_CTL_ADD, notifier.fd(), ...);
//   ...                                                   // readable:
//   uint64_t count;
//   read(notifier.fd(), &count, sizeof count);
//   while (const auto notice = notifier.take()) finish(notice->tag, notice->failed);
//
// A watched completion becomes a notice when its publication has completed, or failed: `failed` is set then, and ready() of its completion
// throws the Error. Notices of one queue come in order. The descriptor, an eventfd, is written when a notice arrives and take() has found none
// before it: many completions, one write. So read it first and then take until there is none; whoever stops earlier is not told again.
//
// Cost: watching is a lock and no allocation, and nothing for publications that nobody watches. One thread of the process looks out for all
// that is watched (completion_thread.hpp); it starts at the first watch(), sleeps when nothing is pending, and handles all that has finished at a wake-up.
//
// Back-pressure: `capacity` completions may be watched and not yet taken. Beyond, try_watch() refuses and watch() throws.
//
// Thread safety: all functions from any thread, the destructor excepted. Lifetime: the destructor forgets what was watched and waits for the drain
// thread where that is writing the descriptor. Queues and the Runtime may go first: what they leave unfinished becomes a failed notice.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/completion/awaited.hpp"
#include "engine/completion/completion.hpp"

namespace uptempo {

class CompletionNotifier {
 public:
  struct Notice {
    Completion completion;
    uint64_t tag = 0;
    bool failed = false;
  };

  // With an eventfd of its own, which does not block and is closed at the end. Throws Error if there is none to be had.
  explicit CompletionNotifier(uint32_t capacity);
  // With the caller's, which stays open longer than the notifier: 1 is added to it.
  CompletionNotifier(uint32_t capacity, int eventfd);
  ~CompletionNotifier();
  CompletionNotifier(const CompletionNotifier&) = delete;
  CompletionNotifier& operator=(const CompletionNotifier&) = delete;

  int fd() const noexcept { return fd_; }

  // Throws Error if `capacity` completions are watched or not yet taken.
  void watch(const Completion& completion, uint64_t tag = 0);
  // The same, but false instead of that.
  [[nodiscard]] bool try_watch(const Completion& completion, uint64_t tag = 0);
  // The oldest notice, if there is one.
  std::optional<Notice> take() noexcept;

  // Watched and not finished.
  uint32_t pending() const noexcept;
  uint32_t capacity() const noexcept { return capacity_; }

 private:
  struct Slot : detail::Awaited {
    CompletionNotifier* notifier = nullptr;
    Completion completion;
    uint64_t tag = 0;
    bool failed = false;
    Slot* next = nullptr;  // among the free ones or the notices
  };
  static void on_finished(detail::Awaited& awaited) noexcept;
  void put(Slot& slot) noexcept;

  const uint32_t capacity_;
  const int fd_;
  const bool owns_fd_;
  std::unique_ptr<Slot[]> slots_;

  mutable std::mutex mutex_;
  std::condition_variable idle_;
  Slot* free_ = nullptr;
  Slot* oldest_ = nullptr;
  Slot* newest_ = nullptr;
  uint32_t pending_ = 0;
  bool armed_ = true;  // the next notice is written
};

}  // namespace uptempo
