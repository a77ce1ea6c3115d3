// What every command-line program of this tree does alike: exit codes, one-sentence errors, --version, JSON to a file or to standard output,
// and a progress line that only a terminal sees.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace uptempo::support {

enum ExitCode : int { exit_ok = 0, exit_measured_failure = 1, exit_usage = 2, exit_unavailable = 77 };

// The command line asks for something that does not exist: exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What the program needs is not on this machine: exit code 77.
struct Unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Of uptempo: "0.1.0".
const char* version() noexcept;

// Adds --version, parses, runs `body` and returns the exit code. Whatever goes wrong is one sentence on stderr, led by the program's
// name: errors of the command line and UsageError end with 2, Unavailable with 77, any other exception with 1.
int run_program(CLI::App& app, int argc, char** argv, const std::function<ExitCode()>& body);

// A CLI11 option of type `--json FILE`; "-" stands for standard output, which then carries nothing else.
void add_json_option(CLI::App& app, std::string& file);

// What is in `file`, or comes from standard input if it is "-". Throws UsageError naming the file and the reason.
std::string read_input(const std::string& file);

// Writes `text` to `file`, or to standard output if it is "-". Throws std::runtime_error naming the file and the reason.
void write_output(const std::string& file, std::string_view text);

// Where the human-readable report goes: standard output, or nowhere when JSON takes its place (`json_file` is "-").
void print_report(const std::string& json_file, std::string_view text);

// A line on stderr that overwrites itself, and vanishes at the end. Nothing at all unless stderr is a terminal. One owner.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::string_view what);  // cut to 79 columns
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
};

}  // namespace uptempo::support
