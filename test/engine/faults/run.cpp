#include "test/engine/faults/run.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <stdexcept>

#include "tools/support/command.hpp"

namespace uptempo::faults {
namespace {

// Waits until the process has ended. Returns false after the limit.
bool ends_within(pid_t process, std::chrono::seconds limit) {
  const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  if (descriptor < 0) throw std::runtime_error("pidfd_open fails: Linux 5.3 is needed");
  pollfd ended{.fd = descriptor, .events = POLLIN, .revents = 0};
  const int found = poll(&ended, 1, static_cast<int>(std::chrono::milliseconds(limit).count()));
  close(descriptor);
  return found == 1;
}

std::string last_lines(const std::string& text, size_t bytes) {
  return text.size() <= bytes ? text : text.substr(text.size() - bytes);
}

}  // namespace

std::string Outcome::last(const std::string& name) const {
  const auto at = std::find_if(facts.rbegin(), facts.rend(),
                               [&](const auto& fact) { return fact.first == name; });
  return at == facts.rend() ? std::string{} : at->second;
}

std::string Outcome::first(const std::string& name, bool again) const {
  bool second = false;
  for (const auto& [key, value] : facts) {
    if (key == "round") second = true;
    if (key == name && second == again) return value;
  }
  return {};
}

bool Outcome::was_injected() const {
  return std::ranges::any_of(
      facts, [](const auto& fact) { return fact.first == "rule" && !fact.second.ends_with(" 0"); });
}

bool Outcome::was_matched() const {
  return std::ranges::any_of(facts, [](const auto& fact) {
    return fact.first == "rule" && !fact.second.starts_with("0 ");
  });
}

std::vector<uint64_t> Outcome::numbers(const std::string& name, unsigned occurrence) const {
  for (const auto& [key, value] : facts) {
    if (key != name || --occurrence != 0) continue;
    std::istringstream words(value);
    std::vector<uint64_t> all;
    for (uint64_t number = 0; words >> number;) all.push_back(number);
    return all;
  }
  return {};
}

std::string Outcome::end() const {
  if (hung) return "hang";
  if (exit_code > 128) {
    const char* const name = sigabbrev_np(exit_code - 128);
    return name == nullptr ? "signal" : std::string("SIG") + name;
  }
  return exit_code == 0 ? "ok" : "exit " + std::to_string(exit_code);
}

Outcome run(const std::string& launcher, const Command& command) {
  std::vector<std::string> arguments{launcher};
  arguments.insert(arguments.end(), command.launcher.begin(), command.launcher.end());
  if (!command.inject.empty()) arguments.insert(arguments.end(), {"--inject", command.inject});
  arguments.insert(arguments.end(),
                   {"--", "/proc/self/exe", command.program, "--scenario", command.scenario,
                    "--patience", std::to_string(command.patience.count())});
  std::vector<char> self(4096);
  const ssize_t length = readlink("/proc/self/exe", self.data(), self.size());
  if (length > 0)  // the launcher's /proc/self/exe would be the launcher
    *std::ranges::find(arguments, "/proc/self/exe") =
        std::string(self.data(), static_cast<size_t>(length));
  const support::TemporaryDirectory directory;
  const std::string out = directory.file("out"), err = directory.file("err");
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t process = fork();
  if (process < 0) throw std::runtime_error("cannot fork");
  if (process == 0) {
    setpgid(0, 0);
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(open(out.c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  setpgid(process, process);
  Outcome outcome;
  outcome.hung = !ends_within(process, command.limit);
  kill(-process, SIGKILL);  // also children that it left behind
  int status = 0;
  waitpid(process, &status, 0);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::istringstream lines(test::contents_of(out));
  for (std::string line; std::getline(lines, line);)
    if (const size_t equals = line.find('='); equals != std::string::npos)
      outcome.facts.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  outcome.err = last_lines(test::contents_of(err), 2000);
  return outcome;
}

}  // namespace uptempo::faults
