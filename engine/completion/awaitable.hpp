// Lets coroutines `co_await` a Completion.
//
//   Task frame(Queue& queue) {
//     BatchSubmitter batch{queue};
//     ...
//     co_await batch.submit();  // resumes when the batch is complete; throws Error if the queue
//                               failed
//     co_await resume_on(loop, batch.submit());  // resumes where `loop` runs the handle
//   }
//
// Where it resumes: if the completion is already complete, the coroutine does not suspend.
// Otherwise `co_await completion` resumes it on the process-wide completion thread
// (completion_thread.hpp), which serves all awaited completions. Code there must be short, hand
// over long work, and never wait for another awaited completion. `resume_on(executor, completion)`
// calls executor(std::coroutine_handle<>) on the completion thread; the thread that resumes the
// handle runs the coroutine. The executor must outlive the wait.
// Errors: the expression throws Error, like Completion::wait, if the queue fails or is destroyed
// with unfinished work, or if the Runtime is destroyed. A coroutine resumed because the Runtime is
// destroyed must not create another Runtime: the destructor waits for the coroutine. An executor
// that throws, or a promise whose unhandled_exception rethrows, ends the program (std::terminate).
// Thread safety: a Queue belongs to one thread at a time. A coroutine that submits must be the
// queue's only submitter, on whichever thread it runs.
// Lifetime: the awaiter lives in the coroutine's frame. Destroying a suspended coroutine removes
// it. Do not destroy the coroutine while it is being resumed, or after an executor has received its
// handle.
// Cost: no allocation.
#pragma once

#include <coroutine>

#include <uptempo/completion/completion.hpp>
#include <uptempo/completion/detail/awaited.hpp>

namespace uptempo {
namespace detail {

class CompletionAwaiter : private Awaited {
 public:
  explicit CompletionAwaiter(const Completion& completion) noexcept;
  ~CompletionAwaiter() {
    if (added_) stop_waiting();
  }
  CompletionAwaiter(const CompletionAwaiter&) = delete;
  CompletionAwaiter& operator=(const CompletionAwaiter&) = delete;

  bool await_ready() const noexcept { return is_finished(publication); }
  // Throws std::system_error if the completion thread cannot be started.
  void await_suspend(std::coroutine_handle<> coroutine);
  void await_resume() const { (void)publication.ready(); }

 protected:
  using Resume = void (*)(CompletionAwaiter&, std::coroutine_handle<>) noexcept;
  void resume_with(Resume resume) noexcept { resume_ = resume; }

 private:
  static void hand_back(Awaited& awaited) noexcept;
  void stop_waiting() noexcept;

  std::coroutine_handle<> coroutine_;
  Resume resume_;
  bool added_ = false;
};

template <class Executor>
class ExecutorAwaiter : public CompletionAwaiter {
 public:
  ExecutorAwaiter(Executor& executor, const Completion& completion) noexcept
      : CompletionAwaiter(completion), executor_(executor) {
    resume_with([](CompletionAwaiter& self, std::coroutine_handle<> coroutine) noexcept {
      static_cast<ExecutorAwaiter&>(self).executor_(coroutine);
    });
  }

 private:
  Executor& executor_;
};

}  // namespace detail

inline detail::CompletionAwaiter operator co_await(const Completion& completion) noexcept {
  return detail::CompletionAwaiter(completion);
}

template <class Executor>
detail::ExecutorAwaiter<Executor> resume_on(Executor& executor,
                                            const Completion& completion) noexcept {
  return {executor, completion};
}

}  // namespace uptempo
