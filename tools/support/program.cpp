#include "tools/support/program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "aql/printable.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/interrupt.hpp"

#ifndef UPTEMPO_VERSION
#error "UPTEMPO_VERSION comes from the build"
#endif

namespace uptempo::support {
namespace {

ExitCode report(const CommandLine& command_line, std::string message, ExitCode code) {
  print_error(command_line.name(), std::move(message));
  return code;
}

// Opens the standard streams that are closed, so that a file that is opened later does not get the
// number of one and then what is meant for it. Using such a stream fails as before, with EBADF.
void occupy_closed_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream)
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      (void)open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

std::string cannot_write(const std::string& file, int error) {
  return fmt::format("cannot write {}{}", file == "-" ? "standard output" : "'" + file + "'",
                     error == 0 ? "" : fmt::format(": {}", std::strerror(error)));
}

// Programs print through std::cout and through stdio. `text` may be empty.
void print_and_flush(std::string_view text) {
  errno = 0;
  std::cout << text << std::flush;
  bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout;
  // Some file systems report a full disk only when a file is closed.
  if (const int copy = failed ? -1 : dup(STDOUT_FILENO); copy >= 0) failed = close(copy) != 0;
  if (failed) throw std::runtime_error(cannot_write("-", errno));
}

}  // namespace

const char* version() noexcept { return UPTEMPO_VERSION; }

void print_error(std::string_view program, std::string message) noexcept {
  std::replace(message.begin(), message.end(), '\n', ' ');
  message = aql::printable(message);
  // The program ends with a code of its own, also where nobody reads the message.
  std::signal(SIGPIPE, SIG_IGN);
  std::fprintf(stderr, "%.*s: %s\n", static_cast<int>(program.size()), program.data(),
               message.c_str());
}

int run_program(CommandLine& command_line, int argc, char** argv,
                const std::function<ExitCode()>& body) {
  occupy_closed_streams();
  try {
    if (const auto answer = command_line.parse({argv + 1, argv + argc})) {
      print(*answer);
      return exit_ok;
    }
    const ExitCode code = body();
    print_and_flush({});
    if (interrupted())
      return report(command_line, "interrupted; the report holds what was measured before",
                    exit_interrupted);
    return code;
  } catch (const UsageError& error) {
    return report(command_line, error.what(), exit_usage);
  } catch (const Unavailable& error) {
    return report(command_line, error.what(), exit_unavailable);
  } catch (const std::exception& error) {
    return report(command_line, error.what(), exit_measured_failure);
  }
}

void add_json_option(CommandLine& command_line, std::string& file) {
  command_line.option("--json", file, "Write JSON; '-' writes only JSON to standard output")
      .output_file()
      .placeholder("FILE|-");
}

std::string read_input(const std::string& file) {
  errno = 0;
  std::ifstream opened;
  if (file != "-") opened.open(file, std::ios::binary);
  std::istream& in = file == "-" ? std::cin : opened;
  std::string text;
  for (char part[65536]; in.read(part, sizeof part), in.gcount() > 0;)
    text.append(part, static_cast<size_t>(in.gcount()));
  if (!in.eof()) throw UsageError(fmt::format("cannot read '{}': {}", file, std::strerror(errno)));
  return text;
}

std::string output_problem(const std::string& file) {
  if (file == "-") return {};
  struct stat status {
  }, itself{};
  const bool exists = stat(file.c_str(), &status) == 0;
  const bool is_name_free = lstat(file.c_str(), &itself) != 0;
  if (exists && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    return access(file.c_str(), W_OK) == 0 ? "" : cannot_write(file, errno);
  const int opened = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (opened < 0) return cannot_write(file, errno);
  close(opened);
  if (is_name_free) {
    unlink(file.c_str());
  } else if (!exists) {  // the file that a link names
    std::error_code error;
    const auto target = std::filesystem::canonical(file, error);
    if (!error) unlink(target.c_str());
  }
  return {};
}

void write_output(const std::string& file, std::string_view text) {
  if (file == "-") return print_and_flush(text);
  std::FILE* const out = std::fopen(file.c_str(), "we");
  if (out == nullptr) throw std::runtime_error(cannot_write(file, errno));
  const bool complete = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  int error = complete ? 0 : errno;
  if (std::fclose(out) != 0 && error == 0) error = errno;
  if (error != 0) throw std::runtime_error(cannot_write(file, error));
}

void write_json(const std::string& file, const nlohmann::ordered_json& document, int indent) {
  write_output(
      file,
      document.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n');
}

void print(std::string_view text) { print_and_flush(aql::printable(text, aql::Lines::kept)); }

void print_report(const std::string& json_file, std::string_view text) {
  if (json_file != "-") print(text);
}

std::string time_left_text(double seconds) {
  if (seconds < 1) return "less than 1 s left";
  if (seconds < 90) return fmt::format("about {:.0f} s left", seconds);
  if (seconds < 90 * 60) return fmt::format("about {:.0f} min left", seconds / 60);
  return fmt::format("about {:.1f} h left", seconds / 3600);
}

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1) {}
Progress::~Progress() { clear(); }

void Progress::show(std::string_view what) {
  if (!terminal_) return;
  std::fprintf(stderr, "\r\x1b[K%s", aql::printable(what).substr(0, 79).c_str());
  std::fflush(stderr);
  shown_ = true;
}

void Progress::show(std::string_view what, uint64_t done, uint64_t of, double most_seconds) {
  if (!terminal_) return;
  if (done == 0 || done > of) return show(what);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
  const double left = spent.count() / static_cast<double>(done) * static_cast<double>(of - done);
  show(fmt::format("{}, {}", what, time_left_text(std::min(left, most_seconds))));
}

void Progress::clear() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace uptempo::support
