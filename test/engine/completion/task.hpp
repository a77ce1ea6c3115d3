// A minimal coroutine type: starts at once, stores its exception, and is destroyed with its owner.
#pragma once

#include <uptempo/uptempo.hpp>

#include <atomic>
#include <coroutine>
#include <exception>
#include <string>
#include <utility>

namespace uptempo::test {

class Task {
 public:
  struct promise_type {
    std::atomic<bool> done{false};
    std::string error;

    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_never initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct Mark {
        bool await_ready() noexcept { return false; }
        // Last store: the owner may destroy the frame as soon as it reads this.
        void await_suspend(std::coroutine_handle<promise_type> self) noexcept {
          self.promise().done = true;
        }
        void await_resume() noexcept {}
      };
      return Mark{};
    }
    void return_void() {}
    void unhandled_exception() {
      try {
        throw;
      } catch (const std::exception& thrown) {
        error = thrown.what();
      }
    }
  };

  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~Task() {
    if (handle_) handle_.destroy();
  }
  bool done() const { return handle_.promise().done; }
  const std::string& error() const { return handle_.promise().error; }

 private:
  std::coroutine_handle<promise_type> handle_;
};

// Counts the completion once it has finished.
inline Task await(Completion completion, std::atomic<int>& count) {
  co_await completion;
  ++count;
}

}  // namespace uptempo::test
