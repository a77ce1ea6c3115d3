// Common behaviour of every command-line program of this tree: exit codes, one-sentence errors,
// --version, JSON to a file or standard output, and a progress line for terminals only.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace uptempo::support {

class CommandLine;

enum ExitCode : int {
  exit_ok = 0,
  exit_measured_failure = 1,
  exit_usage = 2,
  exit_unavailable = 77
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
// Errors: one sentence on stderr, after the program's name. Command-line errors and UsageError
// return 2, Unavailable 77, any other exception 1.
int run_program(CommandLine& command_line, int argc, char** argv,
                const std::function<ExitCode()>& body);

// Adds `--json FILE`. With "-" only JSON is written to standard output.
void add_json_option(CommandLine& command_line, std::string& file);

// Returns the contents of `file`, or standard input if it is "-". Throws UsageError naming the file
// and the reason.
std::string read_input(const std::string& file);

// Writes `text` to `file`, or to standard output if it is "-". Throws std::runtime_error naming the
// file and the reason.
void write_output(const std::string& file, std::string_view text);

// Writes the human-readable report to standard output, or nothing if JSON goes there (`json_file`
// is "-").
void print_report(const std::string& json_file, std::string_view text);

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
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
};

}  // namespace uptempo::support
