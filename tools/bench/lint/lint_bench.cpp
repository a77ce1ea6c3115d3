// lint_bench: the processor time that libuptempo-lint.so adds to a loop of hipLaunchKernel. See
// README.md.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tools/support/command.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/interrupt.hpp"
#include "tools/support/program.hpp"
#include "tools/support/statistics.hpp"
#include "tools/vgpu/launch.hpp"

namespace {

using namespace uptempo;

struct Options {
  uint32_t rounds = 20, launches = 200, turns = 200;
  double bar_percent = 5;
  std::string device = "auto";
  std::string json_file;
};

// The programs and libraries of a build or an installation.
std::string find(const std::vector<std::string>& places) {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const std::string& place : places)
    if (std::filesystem::exists(here / place) && vgpu::distrust(here / place).empty())
      return here / place;
  throw support::Unavailable("no " + places.front() + " in " + here.string());
}

struct Setup {
  std::vector<std::string> command;
  std::string lint;
  vgpu::RunningOn device{};
};

Setup set_up(const Options& options) {
  Setup made;
  const auto choice = vgpu::parse_device(options.device);
  const bool hardware =
      !vgpu::on_virtual_gpu() && choice != vgpu::DeviceChoice::virtual_gpu && vgpu::kfd_answers();
  if (!hardware && choice == vgpu::DeviceChoice::hardware)
    throw support::Unavailable("--device hardware was asked for, but no hardware answers");
  made.device = hardware ? vgpu::RunningOn::hardware : vgpu::RunningOn::virtual_gpu;
  if (!hardware && !vgpu::on_virtual_gpu()) made.command = {vgpu::find_launcher(), "--"};
  made.command.insert(made.command.end(), {find({"lint_loop"}), std::to_string(options.launches)});
  made.lint = find({"../lib/libuptempo-lint.so", UPTEMPO_LINT_LIBRARY});
  return made;
}

// A running loop, with or without the lint.
class Loop {
 public:
  Loop(const Setup& setup, bool with_lint) : with_lint_(with_lint) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
      throw std::runtime_error("cannot make a pipe");
    process_ = fork();
    if (process_ < 0) throw std::runtime_error("cannot fork");
    if (process_ == 0) {
      std::signal(SIGINT, SIG_IGN);  // Ctrl-C ends the measurement after this round
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      if (with_lint) {
        setenv("HSA_TOOLS_LIB", setup.lint.c_str(), 1);
        setenv("UPTEMPO_LINT", ("format=json,file=" + report()).c_str(), 1);
      } else {
        unsetenv("HSA_TOOLS_LIB");
      }
      std::vector<char*> arguments;
      for (const std::string& each : setup.command)
        arguments.push_back(const_cast<char*>(each.c_str()));
      arguments.push_back(nullptr);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    to_ = to[1];
    from_ = fdopen(from[0], "r");
  }
  ~Loop() {
    if (to_ >= 0) close(to_);
    if (process_ > 0) waitpid(process_, nullptr, 0);
    std::fclose(from_);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // CPU time of a launch in nanoseconds.
  double turn() {
    double nanoseconds = 0;
    if (write(to_, "t", 1) != 1 || std::fscanf(from_, "%lf", &nanoseconds) != 1)
      throw std::runtime_error("lint_loop has ended early");
    return nanoseconds;
  }
  // Throws if the loop has failed, or if the lint has not seen it.
  void finish() {
    close(std::exchange(to_, -1));
    int status = 0;
    waitpid(std::exchange(process_, -1), &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      throw std::runtime_error("lint_loop has failed");
    if (with_lint_ && test::contents_of(report()).find("\"lone_doorbell\"") == std::string::npos)
      throw std::runtime_error("the lint has not reported the loop's doorbells");
  }

 private:
  std::string report() const { return directory_.file("report"); }

  const support::TemporaryDirectory directory_;
  const bool with_lint_;
  pid_t process_ = -1;
  int to_ = -1;
  std::FILE* from_ = nullptr;
};

support::ExitCode run(const Options& options) {
  const Setup setup = set_up(options);
  // Medians of a pair of loops. Their turns alternate, so that a drift of the machine's speed
  // affects both alike.
  std::vector<double> without, with, ratios;
  const support::InterruptWatch watch;
  support::Progress progress;
  for (uint32_t round = 0; round < options.rounds && (round == 0 || !support::interrupted());
       ++round) {
    progress.show(fmt::format("round {} of {}", round + 1, options.rounds), round, options.rounds);
    Loop plain(setup, false), linted(setup, true);
    std::vector<double> plain_ns, linted_ns;
    constexpr uint32_t kWarmUp = 20;
    for (uint32_t turn = 0; turn < kWarmUp + options.turns; ++turn) {
      // The first of a pair changes with each turn.
      const double first = turn % 2 == 0 ? plain.turn() : linted.turn();
      const double second = turn % 2 == 0 ? linted.turn() : plain.turn();
      if (turn < kWarmUp) continue;
      plain_ns.push_back(turn % 2 == 0 ? first : second);
      linted_ns.push_back(turn % 2 == 0 ? second : first);
    }
    plain.finish();
    linted.finish();
    without.push_back(support::median(plain_ns));
    with.push_back(support::median(linted_ns));
    ratios.push_back(support::median_ratio(linted_ns, plain_ns).median);
  }
  progress.clear();
  const auto ratio = support::median_interval(ratios);
  const double bar = 1 + options.bar_percent / 100;
  const auto interval = [](const support::MedianInterval& value, int digits) {
    return fmt::format("{:.{}f} ({:.{}f}-{:.{}f})", value.median, digits, value.low, digits,
                       value.high, digits);
  };
  std::string text = fmt::format("device: {}\n", vgpu::label(setup.device));
  text += fmt::format(
      "CPU time of the launching thread per hipLaunchKernel, {} pairs of loops, in ns\n",
      ratios.size());
  text += fmt::format("without the lint  {}\n", interval(support::median_interval(without), 0));
  text += fmt::format("with the lint     {}\n", interval(support::median_interval(with), 0));
  text += fmt::format("ratio             {}, bar {:.3g}: {}\n", interval(ratio, 3), bar,
                      ratio.low > bar    ? "missed"
                      : ratio.high < bar ? "kept"
                                         : "undecided");
  support::print_report(options.json_file, text);
  const nlohmann::json json{{"device", vgpu::label(setup.device)},
                            {"rounds", ratios.size()},
                            {"without_ns", without},
                            {"with_ns", with},
                            {"ratio", ratio.median},
                            {"ratio_low", ratio.low},
                            {"ratio_high", ratio.high},
                            {"bar", bar}};
  support::write_json(options.json_file, json);
  return ratio.low > bar ? support::exit_measured_failure : support::exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app("lint_bench",
                           "Processor time that uptempo-lint adds to a loop of hipLaunchKernel.");
  Options options;
  app.option("--rounds", options.rounds, "Pairs of loops")
      .range(uint32_t{2}, uint32_t{10000})
      .show_default();
  app.option("--launches", options.launches, "Launches between two synchronisations")
      .range(uint32_t{1}, uint32_t{1000000})
      .show_default();
  app.option("--turns", options.turns, "Timed turns of each loop in a round")
      .range(uint32_t{1}, uint32_t{1000000})
      .show_default();
  app.option("--bar", options.bar_percent, "Percent that the lint may add")
      .not_negative()
      .show_default();
  app.option("--device", options.device, "auto, hardware or virtual").show_default();
  support::add_json_option(app, options.json_file);
  return support::run_program(app, argc, argv, [&] { return run(options); });
}
