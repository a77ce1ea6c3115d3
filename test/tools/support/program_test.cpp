#include "tools/support/program.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "tools/support/command.hpp"
#include "tools/support/command_line.hpp"

using namespace uptempo::support;
using uptempo::test::error_of;

namespace {

int run(std::vector<const char*> arguments, const std::function<ExitCode()>& body) {
  CommandLine app("tried", "");
  arguments.insert(arguments.begin(), "tried");
  return run_program(app, static_cast<int>(arguments.size()), const_cast<char**>(arguments.data()),
                     body);
}

}  // namespace

TEST_CASE(
    "exit codes distinguish a failed measurement, a wrong command line and a missing device") {
  CHECK(run({}, [] { return exit_ok; }) == 0);
  CHECK(run({}, [] { return exit_measured_failure; }) == 1);
  CHECK(run({}, []() -> ExitCode { throw std::runtime_error("broken"); }) == 1);
  CHECK(run({}, []() -> ExitCode { throw UsageError("wrong"); }) == 2);
  CHECK(run({}, []() -> ExitCode { throw Unavailable("absent"); }) == 77);
}

TEST_CASE("an unknown option ends with 2 before anything runs, and --help and --version with 0") {
  bool ran = false;
  const auto body = [&] {
    ran = true;
    return exit_ok;
  };
  CHECK(run({"--no-such-option"}, body) == 2);
  CHECK(run({"--help"}, body) == 0);
  CHECK(run({"--version"}, body) == 0);
  CHECK_FALSE(ran);
}

TEST_CASE("output is written to the named file, and the error for an unwritable file names it") {
  const uptempo::test::TemporaryDirectory directory;
  write_output(directory.file("out.json"), "{}\n");
  CHECK(uptempo::test::contents_of(directory.file("out.json")) == "{}\n");
  const std::string nowhere = directory.file("no/such/folder/out.json");
  try {
    write_output(nowhere, "{}");
    FAIL("nothing was thrown");
  } catch (const std::runtime_error& error) {
    CHECK(std::strstr(error.what(), nowhere.c_str()) != nullptr);
    CHECK(std::strstr(error.what(), "No such file or directory") != nullptr);
  }
}

TEST_CASE("input is read completely, and an unreadable file is a usage error that names it") {
  const uptempo::test::TemporaryDirectory directory;
  for (const std::string& text :
       {std::string(), std::string("a\0b\r\n", 5), std::string(100000, 'x')}) {
    write_output(directory.file("in"), text);
    CHECK(read_input(directory.file("in")) == text);
  }
  CHECK(error_of<UsageError>([] { read_input("/no/such/file"); }) ==
        "cannot read '/no/such/file': No such file or directory");
  CHECK(error_of<UsageError>([] { read_input("/tmp"); }) == "cannot read '/tmp': Is a directory");
}

TEST_CASE("a full device is an error with its reason, also if the text fits a buffer") {
  for (const size_t size : {1u, 100000u})
    CHECK(error_of<std::runtime_error>([&] {
            write_output("/dev/full", std::string(size, 'x'));
          }) == "cannot write '/dev/full': No space left on device");
}

TEST_CASE("an output's problem is found without writing to it") {
  const uptempo::test::TemporaryDirectory directory;
  CHECK(output_problem("-") == "");
  CHECK(output_problem("/dev/full") == "");
  CHECK(output_problem(directory.file("new")) == "");
  CHECK_FALSE(std::filesystem::exists(directory.file("new")));
  // A link to a file that does not exist yet is the user's.
  std::filesystem::create_symlink(directory.file("new"), directory.file("link"));
  CHECK(output_problem(directory.file("link")) == "");
  CHECK(std::filesystem::is_symlink(directory.file("link")));
  CHECK_FALSE(std::filesystem::exists(directory.file("new")));
  write_output(directory.file("old"), "kept");
  CHECK(output_problem(directory.file("old")) == "");
  CHECK(uptempo::test::contents_of(directory.file("old")) == "kept");
  CHECK(output_problem(directory.file("old/below")) ==
        "cannot write '" + directory.file("old/below") + "': Not a directory");
  CHECK(output_problem("/tmp") == "cannot write '/tmp': Is a directory");
  CHECK(output_problem("") == "cannot write '': No such file or directory");
}

TEST_CASE("the remaining time is in the unit that people would use") {
  CHECK(time_left_text(0.4) == "less than 1 s left");
  CHECK(time_left_text(89.4) == "about 89 s left");
  CHECK(time_left_text(120) == "about 2 min left");
  CHECK(time_left_text(5400) == "about 1.5 h left");
}

namespace {

// The exit code of a program in a process of its own, whose standard streams `redirect` changes.
int run_redirected(void (*redirect)(), const std::function<ExitCode()>& body) {
  const pid_t process = fork();
  REQUIRE(process >= 0);
  if (process == 0) {
    std::signal(SIGPIPE, SIG_DFL);
    redirect();
    _exit(run({}, body));
  }
  int status = 0;
  REQUIRE(waitpid(process, &status, 0) == process);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void stderr_to_full_disk() { dup2(open("/dev/full", O_WRONLY), STDERR_FILENO); }
void close_stderr() { close(STDERR_FILENO); }
void stderr_to_broken_pipe() {
  int ends[2];
  if (pipe(ends) != 0) _exit(99);
  dup2(ends[1], STDERR_FILENO);
  close(ends[0]);
  close(ends[1]);
}
void close_all_streams() {
  for (int stream = 0; stream < 3; ++stream) close(stream);
}

}  // namespace

TEST_CASE("a report beyond the file size limit is an error, and no signal") {
  const uptempo::test::TemporaryDirectory directory;
  static std::string out, err;
  out = directory.file("out");
  err = directory.file("err");
  const auto redirect = [] {
    std::signal(SIGXFSZ, SIG_DFL);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    dup2(open(out.c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
    const rlimit limit{.rlim_cur = 300, .rlim_max = 300};
    setrlimit(RLIMIT_FSIZE, &limit);
  };
  CHECK(run_redirected(redirect, [] {
          print(std::string(1000, 'x'));
          return exit_ok;
        }) == 1);
  CHECK(uptempo::test::contents_of(err) ==
        "tried: cannot write standard output: File too large: the file size limit (ulimit -f) is "
        "300 bytes\n");
  // Nor does a message that does not fit change the exit code.
  CHECK(run_redirected(redirect, []() -> ExitCode { throw UsageError(std::string(1000, 'x')); }) ==
        2);
}

TEST_CASE("a message that cannot be written does not change the exit code") {
  for (void (*const redirect)() :
       {stderr_to_full_disk, close_stderr, stderr_to_broken_pipe, close_all_streams}) {
    CHECK(run_redirected(redirect, []() -> ExitCode { throw std::runtime_error("broken"); }) == 1);
    CHECK(run_redirected(redirect, []() -> ExitCode { throw UsageError("wrong"); }) == 2);
    CHECK(run_redirected(redirect, []() -> ExitCode { throw Unavailable("absent"); }) == 77);
  }
}

TEST_CASE("standard output that is closed is an error, not an exit code of 0") {
  CHECK(run_redirected(close_all_streams, [] {
          print("lost");
          return exit_ok;
        }) == 1);
}

TEST_CASE("a file that is opened does not get the number of a closed standard stream") {
  CHECK(run_redirected(close_all_streams, [] {
          return open("/dev/null", O_RDWR) > STDERR_FILENO ? exit_ok : exit_usage;
        }) == 0);
}
