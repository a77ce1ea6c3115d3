// Common behaviour of every command-line program of this tree: exit codes, one-sentence errors,
// --version, JSON to a file or standard output, and a progress line for terminals only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tools/support/output.hpp"

namespace uptempo::support {

class CommandLine;

enum ExitCode : int {
  exit_ok = 0,
  exit_measured_failure = 1,
  exit_usage = 2,
  exit_unavailable = 77,
  // 128 + SIGINT or SIGTERM: the report holds what was measured before (interrupt.hpp)
  exit_interrupted = 130,
  exit_terminated = 143
};

// The command line asks for something that does not exist. Exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// This machine lacks something that the program needs. Exit code 77.
struct Unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Uptempo's version, for example "0.1.0".
const char* version() noexcept;

// Parses the command line, runs `body` and returns the exit code.
// Errors: one sentence on stderr, after the program's name (print_error). Command-line errors and
// UsageError return 2, Unavailable 77, any other exception 1, as does standard output that cannot
// be written.
// Returns 130 or 143 if the body has stopped because of SIGINT or SIGTERM.
int run_program(CommandLine& command_line, int argc, char** argv,
                const std::function<ExitCode()>& body);

// Writes one line to stderr, "program: message", before the program ends with an exit code of its
// own. Does nothing where stderr is full, closed or a pipe without a reader; SIGPIPE and SIGXFSZ
// are ignored from then on.
void print_error(std::string_view program, std::string message) noexcept;

// Adds `--json FILE`. With "-" only JSON is written to standard output.
// A file that cannot be written is refused at once.
void add_json_option(CommandLine& command_line, std::string& file);

// Returns the contents of `file`, or standard input if it is "-". Throws UsageError naming the file
// and the reason.
std::string read_input(const std::string& file);

// For example "about 50 s left" or "about 3 min left".
std::string time_left_text(double seconds);

// A line on stderr that overwrites itself and disappears at the end. Writes nothing unless stderr
// is a terminal.
// Thread safety: one owner.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::string_view what);  // cut to 79 columns
  // Adds an estimate of the remaining time: the parts that are done took all the time since the
  // construction, and the others take as long. `most_seconds` limits the estimate.
  void show(std::string_view what, uint64_t done, uint64_t of, double most_seconds = 1e9);
  void clear();

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool terminal_;
  bool shown_ = false;
};

}  // namespace uptempo::support
