#include "tools/support/output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include <uptempo/aql/printable.hpp>
#include <uptempo/aql/whole_file.hpp>

namespace uptempo::support {
namespace {

std::string cannot_write(const std::string& file, const std::string& reason) {
  return fmt::format("cannot write {}{}{}", file == "-" ? "standard output" : "'" + file + "'",
                     reason.empty() ? "" : ": ", reason);
}

// While an object lives, a file that grows beyond its limit is an error of the call (EFBIG).
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() noexcept : before_(std::signal(SIGXFSZ, SIG_IGN)) {}
  ~NoFileSizeSignal() { std::signal(SIGXFSZ, before_); }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;

 private:
  void (*before_)(int);
};

// Programs print through std::cout and through stdio. `text` may be empty.
void print_and_flush(std::string_view text) {
  const NoFileSizeSignal guard;
  errno = 0;
  std::cout << text << std::flush;
  bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout;
  // Some file systems report a full disk only when a file is closed.
  if (const int copy = failed ? -1 : dup(STDOUT_FILENO); copy >= 0) failed = close(copy) != 0;
  if (failed)
    throw std::runtime_error(cannot_write("-", errno == 0 ? "" : aql::write_error(errno)));
}

}  // namespace

std::string output_problem(const std::string& file) {
  if (file == "-") return {};
  const std::string reason = aql::why_not_writable(file);
  return reason.empty() ? "" : cannot_write(file, reason);
}

void write_output(const std::string& file, std::string_view text) {
  if (file == "-") return print_and_flush(text);
  const std::string reason = aql::write_whole_file(file, text, aql::InPlace::written);
  if (!reason.empty()) throw std::runtime_error(cannot_write(file, reason));
}

void write_json(const std::string& file, const nlohmann::ordered_json& document, int indent) {
  if (file.empty()) return;
  write_output(
      file,
      document.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n');
}

void print(std::string_view text) { print_and_flush(aql::printable(text, aql::Lines::kept)); }

void print_report(const std::string& json_file, std::string_view text) {
  if (json_file != "-") print(text);
}

}  // namespace uptempo::support
