#include "run.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>

#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

void drain(int out, int err, Finished& finished) {
  pollfd pipes[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  std::string* texts[2] = {&finished.out, &finished.err};
  for (int open = 2; open > 0;) {
    REQUIRE(poll(pipes, 2, -1) > 0);
    for (int i = 0; i < 2; ++i) {
      if (pipes[i].fd < 0 || pipes[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t count = read(pipes[i].fd, buffer, sizeof buffer);
      if (count > 0) {
        texts[i]->append(buffer, static_cast<size_t>(count));
      } else {
        pipes[i].fd = -1;
        --open;
      }
    }
  }
}

}  // namespace

Finished run(const std::vector<std::string>& arguments,
             const std::vector<std::string>& environment) {
  int out[2];
  int err[2];
  REQUIRE(pipe(out) == 0);
  REQUIRE(pipe(err) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    for (const int descriptor : {out[0], out[1], err[0], err[1]}) close(descriptor);
    for (const std::string& each : environment) putenv(const_cast<char*>(each.c_str()));
    std::vector<char*> argv;
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  Finished finished;
  drain(out[0], err[0], finished);
  close(out[0]);
  close(err[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  finished.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

Finished launch(std::vector<std::string> arguments, const std::vector<std::string>& environment) {
  arguments.insert(arguments.begin(), UPTEMPO_VGPU_LAUNCHER);
  return run(arguments, environment);
}

}  // namespace uptempo::vgpu
