#include "tools/support/program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>

#include "tools/support/command_line.hpp"

#ifndef UPTEMPO_VERSION
#error "UPTEMPO_VERSION comes from the build"
#endif

namespace uptempo::support {
namespace {

ExitCode report(const CommandLine& command_line, std::string message, ExitCode code) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  fmt::print(stderr, "{}: {}\n", command_line.name(), message);
  return code;
}

}  // namespace

const char* version() noexcept { return UPTEMPO_VERSION; }

int run_program(CommandLine& command_line, int argc, char** argv,
                const std::function<ExitCode()>& body) {
  try {
    if (const auto answer = command_line.parse({argv + 1, argv + argc})) {
      std::cout << *answer << std::flush;
      return exit_ok;
    }
    const ExitCode code = body();
    std::cout.flush();
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

void write_output(const std::string& file, std::string_view text) {
  if (file == "-") {
    std::cout << text << std::flush;
    return;
  }
  errno = 0;
  std::ofstream out(file);
  out << text;
  out.close();
  if (!out)
    throw std::runtime_error(fmt::format("cannot write '{}': {}", file, std::strerror(errno)));
}

void print_report(const std::string& json_file, std::string_view text) {
  if (json_file != "-") std::cout << text << std::flush;
}

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1) {}
Progress::~Progress() { clear(); }

void Progress::show(std::string_view what) {
  if (!terminal_) return;
  fmt::print(stderr, "\r\x1b[K{}", what.substr(0, 79));
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace uptempo::support
