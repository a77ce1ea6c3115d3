// Completions in coroutines: `co_await` one instead of waiting for it.
//
//   Task frame(Queue& queue) {
//     BatchSubmitter batch{queue};
//     ...
//     co_await batch.submit();                       // goes on when the batch is complete; throws Error if the queue has failed
//     co_await resume_on(loop, batch.submit());      // goes on wherever `loop` runs what it is given
//   }
//
// Where it goes on. A completion that is complete already does not suspend. After `co_await completion` the coroutine runs on the process's drain
// thread (completion_thread.hpp), which serves every other awaited completion too: keep it short there, hand long work on, and never wait there for another
// awaited completion. `resume_on(executor, completion)` calls executor(std::coroutine_handle<>) on the drain thread, and whatever thread
// resumes the handle runs the coroutine; the executor outlives the wait. Neither may throw: an executor, or a promise whose unhandled_exception
// throws again, ends the program (std::terminate).
//
// Failure. The awaiting expression throws Error, as Completion::wait does, when the queue fails, is destroyed with the work unfinished, or the
// Runtime goes. What is resumed because the Runtime goes must not make another one: it is being waited for.
//
// Threads. A Queue belongs to one thread at a time: a coroutine that submits must be the only one that does, wherever it runs.
//
// Lifetime. The object awaited lives in the coroutine's frame: nothing is allocated, and destroying a suspended coroutine takes it back. Not
// while it is being resumed, or after its handle was given to an executor that will resume it.
#pragma once

#include <coroutine>

#include "engine/completion/awaited.hpp"
#include "engine/completion/completion.hpp"

namespace uptempo {
namespace detail {

class CompletionAwaiter : private Awaited {
 public:
  explicit CompletionAwaiter(const Completion& completion) noexcept;
  ~CompletionAwaiter() {
    if (added_) take_back();
  }
  CompletionAwaiter(const CompletionAwaiter&) = delete;
  CompletionAwaiter& operator=(const CompletionAwaiter&) = delete;

  bool await_ready() const noexcept { return completion_.finished(); }
  // Throws std::system_error if the drain thread cannot be started.
  void await_suspend(std::coroutine_handle<> coroutine);
  void await_resume() const { (void)completion_.ready(); }

 protected:
  using Resume = void (*)(CompletionAwaiter&, std::coroutine_handle<>) noexcept;
  void resume_with(Resume resume) noexcept { resume_ = resume; }

 private:
  static void hand_back(Awaited& awaited) noexcept;
  void take_back() noexcept;

  Completion completion_;
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
detail::ExecutorAwaiter<Executor> resume_on(Executor& executor, const Completion& completion) noexcept {
  return {executor, completion};
}

}  // namespace uptempo
