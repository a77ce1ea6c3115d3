// Runs a program in a child process and returns its exit code and output.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace uptempo::test {

struct CommandResult {
  int exit_code = -1;  // 128 + signal number if a signal ended the program
  std::string out;
  std::string err;
};

// A temporary directory. The destructor removes it with its contents.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string path = (std::filesystem::temp_directory_path() / "uptempo-test-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr)
      throw std::runtime_error("cannot create a directory like " + path);
    path_ = path;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline std::string contents_of(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// A started program. The destructor waits for its end.
class RunningCommand {
 public:
  explicit RunningCommand(const std::vector<std::string>& arguments) {
    std::vector<char*> argv;
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    const std::string out = directory_.file("out"), err = directory_.file("err");
    process_ = fork();
    if (process_ < 0) throw std::runtime_error("cannot fork");
    if (process_ == 0) {
      const int in_file = open("/dev/null", O_RDONLY);
      const int out_file = open(out.c_str(), O_WRONLY | O_CREAT, 0600);
      const int err_file = open(err.c_str(), O_WRONLY | O_CREAT, 0600);
      dup2(in_file, STDIN_FILENO);
      dup2(out_file, STDOUT_FILENO);
      dup2(err_file, STDERR_FILENO);
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
    waitpid(process_, &status, 0);
    process_ = -1;
    return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            .out = contents_of(directory_.file("out")),
            .err = contents_of(directory_.file("err"))};
  }

 private:
  TemporaryDirectory directory_;
  pid_t process_ = -1;
};

inline CommandResult run_command(const std::vector<std::string>& arguments) {
  return RunningCommand(arguments).finish();
}

}  // namespace uptempo::test
