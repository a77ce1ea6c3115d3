// Completions in an event loop: a program that waits in epoll, and coroutines that await their
// batches.
//
// Four requests, each with its own queue, run three batches in succession. Each request is a
// coroutine that `co_await`s its batch and resumes in the loop. A notifier makes the same
// completions readable in epoll, as a server would combine them with its sockets. The library's
// completion thread waits for all of them.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uptempo/kernels/workgroups_of_256.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <coroutine>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

using namespace uptempo;

namespace {

constexpr uint32_t kRequests = 4, kBatches = 3, kItems = 1024;

// The program's loop: receives coroutines from the library's thread and resumes them in its own.
class Loop {
 public:
  explicit Loop(CompletionNotifier& notifier) : notifier_(notifier) {
    watch(notifier.fd());
    watch(posted_fd_);
  }
  ~Loop() {
    close(epoll_);
    close(posted_fd_);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Called by resume_on(), in the library's thread: only queues the coroutine.
  void operator()(std::coroutine_handle<> coroutine) {
    {
      const std::lock_guard lock(mutex_);
      posted_.push_back(coroutine);
    }
    eventfd_write(posted_fd_, 1);
  }

  // Runs until `tasks` tasks are done. Returns the number of notices.
  size_t run(const size_t& done, size_t tasks) {
    size_t notices = 0;
    while (done != tasks || notices != kRequests * kBatches) {
      epoll_event event{};
      if (epoll_wait(epoll_, &event, 1, 60'000) != 1)
        throw std::runtime_error("no completion arrived within a minute");
      eventfd_t count = 0;
      eventfd_read(event.data.fd, &count);
      if (event.data.fd == notifier_.fd()) {
        while (const auto notice = notifier_.take()) {
          notice->completion.wait();  // already complete; throws Error if the queue has failed
          ++notices;
        }
      } else {
        resume_posted();
      }
    }
    return notices;
  }

 private:
  void watch(int fd) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }
  void resume_posted() {
    std::vector<std::coroutine_handle<>> posted;
    {
      const std::lock_guard lock(mutex_);
      posted.swap(posted_);
    }
    for (const std::coroutine_handle<> coroutine : posted) coroutine.resume();
  }

  CompletionNotifier& notifier_;
  int epoll_ = epoll_create1(EPOLL_CLOEXEC);
  int posted_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  std::mutex mutex_;
  std::vector<std::coroutine_handle<>> posted_;
};

// A coroutine that starts immediately and destroys itself at the end.
struct Task {
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

struct Request {
  explicit Request(const Agent& gpu) : queue(gpu), values(gpu, kItems) {}
  Queue queue;
  PinnedBuffer<uint32_t> values;
  std::exception_ptr error;
};

Task serve(Request& request, const Kernel<uint32_t*, uint32_t>& increment, Loop& loop,
           CompletionNotifier& notifier, size_t& done) {
  try {
    BatchSubmitter batch{request.queue};
    for (uint32_t b = 0; b < kBatches; ++b) {
      batch.dispatch(increment, Grid{kItems}.by(256), request.values.data(), b);
      const Completion completion = batch.submit();
      notifier.watch(completion, b);
      co_await resume_on(loop, completion);  // resumes in the loop's thread
    }
  } catch (...) {
    request.error = std::current_exception();
  }
  ++done;
}

bool serve_all(const Agent& gpu) {
  Program program{gpu, builtin_kernels::workgroups_of_256()};
  auto increment = program.kernel<uint32_t*, uint32_t>("chain_increment");  // x = 3 x + b
  CompletionNotifier notifier{kRequests * kBatches};
  Loop loop{notifier};
  size_t done = 0;
  std::vector<std::unique_ptr<Request>> all;
  for (uint32_t r = 0; r < kRequests; ++r) {
    all.push_back(std::make_unique<Request>(gpu));
    std::ranges::fill(all.back()->values.span(), r);
    serve(*all.back(), increment, loop, notifier, done);
  }
  loop.run(done, kRequests);

  bool right = true;
  for (uint32_t r = 0; r < kRequests; ++r) {
    if (all[r]->error) std::rethrow_exception(all[r]->error);
    uint32_t expected = r;
    for (uint32_t b = 0; b < kBatches; ++b) expected = expected * 3 + b;
    right = right && std::ranges::count(all[r]->values.span(), expected) == kItems;
  }
  return right;
}

}  // namespace

int main() try {
  Runtime runtime;
  Agent gpu = runtime.gpu();
  const bool right = serve_all(gpu);
  std::printf("%s: %u requests of %u batches each, %s\n", gpu.name().c_str(), kRequests, kBatches,
              right ? "right" : "wrong");
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "event_loop: %s\n", error.what());
  return 1;
}
