// Other processes of a test, and the functions of query.h that act on a machine.
#pragma once

#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <uptempo/vgpu/query.h>
#include "test/support/catch.hpp"

namespace uptempo::vgpu {

// One end of a connection between two processes: values that are copied as bytes.
class Channel {
 public:
  Channel() = default;
  Channel(int in, int out) : in_(in), out_(out) {}

  template <class T>
  void send(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    REQUIRE(write(out_, &value, sizeof value) == static_cast<ssize_t>(sizeof value));
  }
  // Fails if the other process has ended.
  template <class T>
  T receive() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    REQUIRE(read(in_, &value, sizeof value) == static_cast<ssize_t>(sizeof value));
    return value;
  }

  int in() const { return in_; }
  int out() const { return out_; }

 private:
  int in_ = -1, out_ = -1;
};

// A child process and the connection to it. Its end is the end of the scope.
class Child : public Channel {
 public:
  // Forks a child that executes `body(channel)` and exits with its result.
  template <class Body>
  explicit Child(Body body) {
    int to_child[2], to_parent[2];
    REQUIRE(pipe(to_child) == 0);
    REQUIRE(pipe(to_parent) == 0);
    process_ = fork();
    REQUIRE(process_ >= 0);
    if (process_ == 0) {
      close(to_child[1]);
      close(to_parent[0]);
      Channel channel(to_child[0], to_parent[1]);
      int result = 120;  // an assertion failed
      try {
        result = body(channel);
      } catch (...) {
      }
      _exit(result);
    }
    close(to_child[0]);
    close(to_parent[1]);
    static_cast<Channel&>(*this) = Channel(to_parent[0], to_child[1]);
  }
  ~Child() {
    kill();
    close(in());
    close(out());
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Waits for the child's end and returns its exit code, or 128 + the signal that ended it.
  int wait() {
    int status = 0;
    REQUIRE(waitpid(std::exchange(process_, 0), &status, 0) > 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    waitpid(std::exchange(process_, 0), nullptr, 0);
  }

 private:
  pid_t process_ = 0;
};

inline int reset_gpu(uint32_t index) {
  const auto reset =
      reinterpret_cast<uptempo_vgpu_reset_gpu_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_reset_gpu"));
  REQUIRE(reset != nullptr);
  return reset(index);
}

}  // namespace uptempo::vgpu
