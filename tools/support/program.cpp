#include "tools/support/program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <utility>

#include <uptempo/aql/printable.hpp>
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

ExitCode exit_of_signal() {
  return interrupting_signal() == SIGTERM ? exit_terminated : exit_interrupted;
}

}  // namespace

const char* version() noexcept { return UPTEMPO_VERSION; }

void print_error(std::string_view program, std::string message) noexcept {
  std::replace(message.begin(), message.end(), '\n', ' ');
  message = aql::printable(message);
  // The program ends with a code of its own, also where nobody reads the message.
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
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
    print({});  // what the body has printed by other means
    if (interrupted())
      return report(command_line, "interrupted; the report holds what was measured before",
                    exit_of_signal());
    return code;
  } catch (const Interrupted& error) {
    return report(command_line, error.what(), exit_of_signal());
  } catch (const UsageError& error) {
    return report(command_line, error.what(), exit_usage);
  } catch (const Unavailable& error) {
    return report(command_line, error.what(), exit_unavailable);
  } catch (const std::exception& error) {
    return report(command_line, error.what(), exit_measured_failure);
  }
}

void add_json_option(CommandLine& command_line, std::string& file) {
  command_line.option("--json FILE|-", file, "Write JSON; '-' writes only JSON to standard output")
      .output_file();
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
