// lint_bench: the processor time that libuptempo-lint.so adds to a loop of hipLaunchKernel. See
// README.md.
#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/support/command.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/program.hpp"
#include "tools/support/rounds.hpp"
#include "tools/support/statistics.hpp"
#include "tools/vgpu/launch.hpp"

namespace {

using namespace uptempo;

struct Options {
  support::Rounds rounds{.count = 20};
  uint32_t launches = 200, turns = 100;
  double bar_percent = 5;
  std::string device = "auto";
  std::string json_file;
};

// The programs and libraries of a build or an installation.
std::string find(const std::vector<std::string>& places) {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const std::string& place : places)
    if (std::filesystem::exists(here / place)) return here / place;
  throw support::Unavailable("no " + places.front() + " in " + here.string());
}

class Subjects {
 public:
  explicit Subjects(const Options& options) {
    const auto choice = vgpu::parse_device(options.device);
    const bool hardware =
        !vgpu::on_virtual_gpu() && choice != vgpu::DeviceChoice::virtual_gpu && vgpu::kfd_answers();
    if (!hardware && choice == vgpu::DeviceChoice::hardware)
      throw support::Unavailable("--device hardware was asked for, but no hardware answers");
    device_ = hardware ? vgpu::RunningOn::hardware : vgpu::RunningOn::virtual_gpu;
    if (!hardware && !vgpu::on_virtual_gpu()) command_ = {vgpu::find_launcher(), "--"};
    command_.insert(command_.end(), {find({"lint_loop"}), std::to_string(options.turns),
                                     std::to_string(options.launches)});
    lint_ = find({"../lib/libuptempo-lint.so", UPTEMPO_LINT_LIBRARY});
  }

  // CPU time of a launch in nanoseconds.
  double run(bool with_lint) const {
    const support::TemporaryDirectory directory;
    test::CommandOptions options;
    const std::string report = directory.file("report");
    if (with_lint)
      options.environment = {"HSA_TOOLS_LIB=" + lint_, "UPTEMPO_LINT=format=json,file=" + report};
    const auto result = test::run_command(command_, options);
    double nanoseconds = 0;
    const char* const end = result.out.data() + result.out.size();
    if (result.exit_code != 0 ||
        std::from_chars(result.out.data(), end, nanoseconds).ec != std::errc{})
      throw std::runtime_error("lint_loop failed: " + result.err);
    if (with_lint && test::contents_of(report).find("\"finding\"") == std::string::npos)
      throw std::runtime_error("the lint has not reported the loop's doorbells: " + result.err);
    return nanoseconds;
  }
  vgpu::RunningOn device() const { return device_; }

 private:
  std::vector<std::string> command_;
  std::string lint_;
  vgpu::RunningOn device_{};
};

support::ExitCode run(const Options& options) {
  const Subjects subjects(options);
  std::vector<double> without, with;
  support::take_turns(options.rounds, 2, [&](size_t turn) {
    (turn == 0 ? without : with).push_back(subjects.run(turn == 1));
  });
  const auto ratio = support::median_ratio(with, without);
  const double bar = 1 + options.bar_percent / 100;
  const auto interval = [](const support::MedianInterval& value, int digits) {
    return fmt::format("{:.{}f} ({:.{}f}-{:.{}f})", value.median, digits, value.low, digits,
                       value.high, digits);
  };
  std::string text = fmt::format("device: {}\n", vgpu::label(subjects.device()));
  text += fmt::format("CPU time of the launching thread per hipLaunchKernel, {} rounds, in ns\n",
                      options.rounds.count);
  text += fmt::format("without the lint  {}\n", interval(support::median_interval(without), 0));
  text += fmt::format("with the lint     {}\n", interval(support::median_interval(with), 0));
  text += fmt::format("ratio             {}, bar {:.3g}: {}\n", interval(ratio, 3), bar,
                      ratio.low > bar    ? "missed"
                      : ratio.high < bar ? "kept"
                                         : "undecided");
  support::print_report(options.json_file, text);
  if (!options.json_file.empty()) {
    const nlohmann::json json{{"device", vgpu::label(subjects.device())},
                              {"rounds", options.rounds.count},
                              {"without_ns", without},
                              {"with_ns", with},
                              {"ratio", ratio.median},
                              {"ratio_low", ratio.low},
                              {"ratio_high", ratio.high},
                              {"bar", bar}};
    support::write_output(options.json_file, json.dump(2) + "\n");
  }
  return ratio.low > bar ? support::exit_measured_failure : support::exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app("lint_bench",
                           "Processor time that uptempo-lint adds to a loop of hipLaunchKernel.");
  Options options;
  support::add_rounds_options(app, options.rounds, 2);
  app.option("--launches", options.launches, "Launches between two synchronisations")
      .range(uint32_t{1}, uint32_t{1000000})
      .show_default();
  app.option("--turns", options.turns, "Synchronisations in a run of the loop")
      .range(uint32_t{1}, uint32_t{1000000})
      .show_default();
  app.option("--bar", options.bar_percent, "Percent that the lint may add")
      .not_negative()
      .show_default();
  app.option("--device", options.device, "auto, hardware or virtual").show_default();
  support::add_json_option(app, options.json_file);
  return support::run_program(app, argc, argv, [&] { return run(options); });
}
