#include <uptempo/completion/awaitable.hpp>

#include <uptempo/completion/completion_thread.hpp>

namespace uptempo::detail {

CompletionAwaiter::CompletionAwaiter(const Completion& completion) noexcept
    : Awaited{.publication = completion, .on_finished = &CompletionAwaiter::hand_back},
      resume_([](CompletionAwaiter&, std::coroutine_handle<> coroutine) noexcept {
        coroutine.resume();
      }) {}

void CompletionAwaiter::await_suspend(std::coroutine_handle<> coroutine) {
  coroutine_ = coroutine;
  added_ = true;
  try {
    CompletionThread::of_process().add(*this);
  } catch (...) {
    added_ = false;
    throw;
  }
  // Do not access *this here: the coroutine may already have been resumed and destroyed.
}

void CompletionAwaiter::hand_back(Awaited& awaited) noexcept {
  auto& self = static_cast<CompletionAwaiter&>(awaited);
  self.added_ = false;
  self.resume_(self, self.coroutine_);
}

void CompletionAwaiter::stop_waiting() noexcept { CompletionThread::of_process().remove(*this); }

}  // namespace uptempo::detail
