// Common behaviour of every command-line program of this tree: exit codes, one-sentence errors,
// --version, JSON to a file or standard output, and a progress line for terminals only.
#pragma once

#include <chrono>
#include <cstdint>
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
  exit_unavailable = 77,
  exit_interrupted = 130  // 128 + SIGINT: the report holds what was measured before (interrupt.hpp)
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
// UsageError return 2, Unavailable 77, any other exception 1, as does standard output that cannot be written.
// Returns 130 if the body has stopped because of SIGINT.
int run_program(CommandLine& command_line, int argc, char** argv,
                const std::function<ExitCode()>& body);

// Writes one line to stderr, "program: message", before the program ends with an exit code that says
// so. Does nothing where stderr is full, closed or a pipe without a reader; SIGPIPE is ignored from
// then on.
void print_error(std::string_view program, std::string message) noexcept;

// Adds `--json FILE`. With "-" only JSON is written to standard output.
// A file that cannot be written is refused at once.
void add_json_option(CommandLine& command_line, std::string& file);

// Returns the contents of `file`, or standard input if it is "-". Throws UsageError naming the file
// and the reason.
std::string read_input(const std::string& file);

// What prevents `file` from being written, for example "cannot write 'a/b': No such file or
// directory"; "" if nothing does, or if it is "-". Leaves no new file, and does not open pipes,
// whose readers would see the end of their input.
std::string output_problem(const std::string& file);

// Writes `text` to `file`, or to standard output if it is "-". Throws std::runtime_error naming the
// file and the reason, also of a full disk.
void write_output(const std::string& file, std::string_view text);

// The same for JSON, with a newline at the end. `indent` as of nlohmann's dump(): -1 for one line.
// Bytes of strings that are not UTF-8 become U+FFFD.
void write_json(const std::string& file, const nlohmann::ordered_json& document, int indent = 2);

// Writes text for a person to standard output, without control characters but line feeds and tabs.
// Throws std::runtime_error with the reason.
void print(std::string_view text);

// Writes the human-readable report to standard output, or nothing if JSON goes there (`json_file`
// is "-"). Throws std::runtime_error with the reason.
void print_report(const std::string& json_file, std::string_view text);

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
