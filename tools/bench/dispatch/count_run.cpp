// The counting run, from outside: executes this program again with the counters preloaded and, on
// the virtual GPU, reads its trace while it is written.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "tools/bench/dispatch/counts.hpp"
#include "tools/support/command.hpp"
#include "tools/support/interrupt.hpp"
#include "tools/support/program.hpp"
#include "tools/support/temporary_directory.hpp"
#include "tools/vgpu/launch.hpp"

namespace uptempo::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kMinutes = 5;

[[noreturn]] void fail(const std::string& what, int error) {
  throw std::runtime_error(what + ": " + std::strerror(error));
}

// Keeps the times of the doorbells and discards the packets. There are millions of packets, so the
// trace is a pipe, not a file.
class Doorbells {
 public:
  explicit Doorbells(const std::string& pipe) {
    if (mkfifo(pipe.c_str(), 0600) != 0) fail("cannot create the pipe " + pipe, errno);
    // Also open for writing: the reader then does not see end-of-file when a writer closes the
    // pipe, and open() does not block.
    descriptor_ = open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (descriptor_ < 0) fail("cannot open the pipe " + pipe, errno);
    fcntl(descriptor_, F_SETPIPE_SZ,
          // polled rarely, to leave the device its core; a smaller pipe only makes the run slower
          1 << 20);
  }
  ~Doorbells() { close(descriptor_); }
  Doorbells(const Doorbells&) = delete;
  Doorbells& operator=(const Doorbells&) = delete;

  void read_all() {
    char buffer[65536];
    for (ssize_t count; (count = ::read(descriptor_, buffer, sizeof buffer)) > 0;) {
      text_.append(buffer, static_cast<size_t>(count));
      size_t begin = 0;
      for (size_t end; (end = text_.find('\n', begin)) != std::string::npos; begin = end + 1)
        take(std::string_view(text_).substr(begin, end - begin));
      text_.erase(0, begin);
    }
  }

  std::vector<uint64_t> ascending_ns() {
    std::ranges::sort(moments_);
    return moments_;
  }

 private:
  void take(std::string_view line) {
    if (line.find(R"("type":"doorbell")") == std::string_view::npos) return;
    moments_.push_back(nlohmann::json::parse(line).at("ns").get<uint64_t>());
  }

  int descriptor_ = -1;
  std::string text_;
  std::vector<uint64_t> moments_;
};

CountReport count(const std::vector<std::string>& arguments, bool on_virtual_gpu) {
  const fs::path program = fs::read_symlink("/proc/self/exe");
  const std::string library = (program.parent_path() / "libdispatch_bench_counters.so").string();
  if (access(library.c_str(), R_OK) != 0) fail("cannot read " + library, errno);
  if (library.find_first_of(": ") != std::string::npos)
    throw std::runtime_error(library +
                             " has a space or colon in its path, which LD_PRELOAD cannot express");
  const support::TemporaryDirectory folder;
  Doorbells doorbells(folder.file("trace"));
  std::vector<std::string> command;
  // The environment already holds the device's other options.
  if (on_virtual_gpu) command = {vgpu::find_launcher(), "--trace", folder.file("trace"), "--"};
  command.insert(command.end(), {program.string(), "--count-into", folder.file("counts")});
  command.insert(command.end(), arguments.begin(), arguments.end());
  const char* const preloaded = std::getenv("LD_PRELOAD");
  // Last, because a sanitizer's runtime must be the first preloaded library.
  const std::string others = preloaded == nullptr ? "" : preloaded + std::string(":");
  const test::CommandResult run = test::run_command(
      command, {.environment = {"LD_PRELOAD=" + others + library, "HSA_TOOLS_LIB=" + library},
                .seconds = kMinutes * 60.0,
                .stop = [&doorbells] {
                  doorbells.read_all();
                  return support::interrupted();
                }});
  doorbells.read_all();
  if (run.timed_out)
    throw std::runtime_error(fmt::format("the counting run took more than {} minutes", kMinutes));
  if (run.stopped) throw support::Interrupted("interrupted in the counting run");
  if (run.exit_code != 0) {
    std::string errors = run.err;
    std::ranges::replace(errors, '\n', ' ');
    throw std::runtime_error("the counting run failed: " + errors);
  }
  return read_counts(support::read_input(folder.file("counts")), doorbells.ascending_ns(),
                     on_virtual_gpu ? "" : "hardware has no trace of doorbells");
}

}  // namespace

CountReport count_in_a_run_of_its_own(const std::vector<std::string>& arguments,
                                      bool on_virtual_gpu) {
  try {
    return count(arguments, on_virtual_gpu);
  } catch (const std::exception& error) {
    return CountReport::none(error.what());
  }
}

}  // namespace uptempo::bench
