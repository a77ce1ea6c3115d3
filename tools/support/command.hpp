// Runs a program in a child process and returns its exit code and output.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
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
  bool timed_out = false;
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
};

// A started program. `arguments[0]` is searched in PATH unless it contains a slash; a program that
// cannot be started ends with 127. The destructor waits for its end.
class RunningCommand {
 public:
  explicit RunningCommand(const std::vector<std::string>& arguments,
                          const CommandOptions& options = {})
      : seconds_(options.seconds) {
    std::vector<char*> argv;
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    const std::string in = directory_.file("in"), out = directory_.file("out"),
                      err = directory_.file("err");
    std::ofstream(in, std::ios::binary) << options.input;
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
      if (options.own_group) setpgid(0, 0);
      for (const std::string& each : options.environment) putenv(const_cast<char*>(each.c_str()));
      execvp(argv[0], argv.data());
      _exit(127);
    }
  }
  ~RunningCommand() {
    if (process_ > 0) waitpid(process_, nullptr, 0);
  }
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  CommandResult finish() {
    int status = 0;
    const bool timed_out = seconds_ && !ends_within(*seconds_, status);
    if (timed_out) kill(process_, SIGKILL);
    if (timed_out || !seconds_) waitpid(process_, &status, 0);
    process_ = -1;
    return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            .timed_out = timed_out,
            .out = contents_of(directory_.file("out")),
            .err = contents_of(directory_.file("err"))};
  }

  pid_t process() const { return process_; }

 private:
  bool ends_within(double seconds, int& status) const {
    using namespace std::chrono;
    const auto end = steady_clock::now() + duration<double>(seconds);
    while (waitpid(process_, &status, WNOHANG) == 0) {
      if (steady_clock::now() >= end) return false;
      std::this_thread::sleep_for(milliseconds(2));
    }
    return true;
  }

  const std::optional<double> seconds_;
  TemporaryDirectory directory_;
  pid_t process_ = -1;
};

inline CommandResult run_command(const std::vector<std::string>& arguments,
                                 const CommandOptions& options = {}) {
  return RunningCommand(arguments, options).finish();
}

}  // namespace uptempo::test
