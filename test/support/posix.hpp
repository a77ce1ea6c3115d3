// Fork children and pipes of a test. tools/support/command.hpp runs programs.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "test/support/catch.hpp"

namespace uptempo::test {

// Runs `body` in a fork child and returns the child's exit code, body's result, or 128 + the number
// of the signal that ended the child. The child runs nothing else of the test.
template <class Body>
int in_child(Body&& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(std::forward<Body>(body)());
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A pipe. At its end it checks that nothing else has closed its descriptors.
class Pipe {
 public:
  Pipe() { REQUIRE(pipe(ends_) == 0); }
  ~Pipe() {
    for (const int end : ends_) CHECK(close(end) == 0);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }

 private:
  int ends_[2] = {-1, -1};
};

}  // namespace uptempo::test
