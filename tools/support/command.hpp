// Runs a program in a child process and returns its exit code and output.
#pragma once

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tools/support/temporary_directory.hpp"

namespace uptempo::test {

struct CommandResult {
  int exit_code = -1;  // 128 + signal number if a signal ended the program
  bool timed_out = false, stopped = false;
  std::string out;
  std::string err;
};

using support::TemporaryDirectory;

inline std::string contents_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct CommandOptions {
  std::vector<std::string> environment{};  // "NAME=value", added to this process's
  std::string input{};                     // standard input
  std::optional<double> seconds{};         // then the program is killed
  bool own_group = false;                  // in a process group of its own, as in a shell
  // Queried every few milliseconds, for example support::interrupted(). When it returns true, the
  // program is killed. With it, the program has a group of its own, so that only this process
  // receives a terminal's signals and decides; and the program ends if this process does.
  std::function<bool()> stop{};
};

// A started program. `arguments[0]` is searched in PATH unless it contains a slash; a program that
// cannot be started ends with 127. The destructor waits for its end.
class RunningCommand {
 public:
  explicit RunningCommand(const std::vector<std::string>& arguments,
                          const CommandOptions& options = {})
      : seconds_(options.seconds), stop_(options.stop) {
    std::vector<char*> argv;
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    const std::string in = directory_.file("in"), out = directory_.file("out"),
                      err = directory_.file("err");
    std::ofstream(in, std::ios::binary) << options.input;
    const bool own_group = options.own_group || options.stop;
    const pid_t parent = getpid();
    process_ = fork();
    if (process_ < 0) throw std::runtime_error("cannot fork");
    if (process_ == 0) {
      const int in_file = open(in.c_str(), O_RDONLY);
      const int out_file = open(out.c_str(), O_WRONLY | O_CREAT, 0600);
      const int err_file = open(err.c_str(), O_WRONLY | O_CREAT, 0600);
      dup2(in_file, STDIN_FILENO);
      dup2(out_file, STDOUT_FILENO);
      dup2(err_file, STDERR_FILENO);
      for (const int file : {in_file, out_file, err_file}) close(file);
      if (own_group) setpgid(0, 0);
      if (options.stop && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent))
        _exit(127);
      for (const std::string& each : options.environment) putenv(const_cast<char*>(each.c_str()));
      execvp(argv[0], argv.data());
      _exit(127);
    }
    if (own_group) setpgid(process_, process_);  // whichever process does it first
  }
  ~RunningCommand() {
    if (process_ > 0) waitpid(process_, nullptr, 0);
  }
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  CommandResult finish() {
    int status = 0;
    const End end = wait(status);
    // With `stop` the program leads a group, which its own children are in, too.
    if (end != End::ended) kill(stop_ ? -process_ : process_, SIGKILL);
    if (!is_polled()) waitpid(process_, &status, 0);
    if (end != End::ended) reap_killed(status);
    process_ = -1;
    return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            .timed_out = end == End::timed_out,
            .stopped = end == End::stopped,
            .out = contents_of(directory_.file("out")),
            .err = contents_of(directory_.file("err"))};
  }

  pid_t process() const { return process_; }

 private:
  enum class End { ended, timed_out, stopped };

  // A process that waits inside a driver may not be killed: it is then left behind.
  void reap_killed(int& status) const {
    status = SIGKILL;
    for (int i = 0; i < 1000 && waitpid(process_, &status, WNOHANG) == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

  bool is_polled() const { return seconds_ || stop_; }
  End wait(int& status) const {
    using namespace std::chrono;
    const auto begin = steady_clock::now();
    while (is_polled() && waitpid(process_, &status, WNOHANG) == 0) {
      if (stop_ && stop_()) return End::stopped;
      if (seconds_ && steady_clock::now() - begin >= duration<double>(*seconds_))
        return End::timed_out;
      std::this_thread::sleep_for(milliseconds(2));
    }
    return End::ended;
  }

  const std::optional<double> seconds_;
  const std::function<bool()> stop_;
  TemporaryDirectory directory_;
  pid_t process_ = -1;
};

inline CommandResult run_command(const std::vector<std::string>& arguments,
                                 const CommandOptions& options = {}) {
  return RunningCommand(arguments, options).finish();
}

}  // namespace uptempo::test
