// stream_bench: the argument size from which a launcher's skipping is cheaper than writing. See
// README.md.
#include <fmt/format.h>
#include <uptempo/kernels/arguments.hpp>
#include <uptempo/uptempo.hpp>

#include <array>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tools/support/command_line.hpp"
#include "tools/support/device.hpp"
#include "tools/support/program.hpp"
#include "tools/support/rounds.hpp"
#include "tools/support/statistics.hpp"
#include "tools/support/table.hpp"

namespace {

using namespace uptempo;

struct Options {
  support::Rounds rounds;
  std::string device = "auto";
  std::string json_file;
};

// Launches between two synchronisations: fewer than a queue's epoch, so that no launch does
// additional work.
constexpr uint32_t kLaunches = 100;

enum class Way : uint8_t { written, skipped, changed };
constexpr std::array kWays{Way::written, Way::skipped, Way::changed};

template <size_t Bytes>
using Words = std::array<uint32_t, (Bytes - 8) / 4>;

// Host nanoseconds per launch. Throws std::runtime_error if a kernel did not read its arguments.
template <size_t Bytes>
class Launches {
 public:
  Launches(const Agent& gpu, Streams& streams, const Program& program)
      : stream_(streams),
        kernel_(program.kernel<uint32_t*, Words<Bytes>>(fmt::format("arguments_of_{}", Bytes))),
        keeping_(streams, kernel_, 8),
        writing_(streams, kernel_, 0),
        out_(gpu, 1) {}

  double operator()(Way way) {
    auto& launcher = way == Way::written ? writing_ : keeping_;
    const Counters before = Counters::now();
    words_.back() = ++number_;
    words_.front() = 7;
    // writes the arguments that later launches skip
    launcher.launch(stream_, Grid{1}, out_.data(), words_);
    const auto start = std::chrono::steady_clock::now();
    for (uint32_t i = 0; i < kLaunches; ++i) {
      if (way == Way::changed) words_.back() = ++number_;
      launcher.launch(stream_, Grid{1}, out_.data(), words_);
    }
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    stream_.synchronize();
    if (out_[0] != words_.front() + words_.back())
      throw std::runtime_error(
          fmt::format("a kernel with {} bytes of arguments read other values", Bytes));
    if (const uint64_t hits = (Counters::now() - before).argument_hits;
        hits != (way == Way::skipped ? kLaunches : 0))
      throw std::runtime_error(fmt::format(
          "{} of {} launches skipped their arguments; expected all or none", hits, kLaunches));
    return spent.count() / kLaunches;
  }

 private:
  Stream stream_;
  Kernel<uint32_t*, Words<Bytes>> kernel_;
  Launcher<uint32_t*, Words<Bytes>> keeping_, writing_;
  PinnedBuffer<uint32_t> out_;
  Words<Bytes> words_{};
  uint32_t number_ = 0;
};

struct Size {
  size_t bytes;
  std::function<double(Way)> run;
  std::array<std::vector<double>, kWays.size()> ns;
};

template <size_t... Bytes>
std::vector<Size> sizes(const Agent& gpu, Streams& streams, const Program& program) {
  std::vector<Size> all;
  (all.push_back({Bytes,
                  [run = std::make_shared<Launches<Bytes>>(gpu, streams, program)](Way way) {
                    return (*run)(way);
                  },
                  {}}),
   ...);
  return all;
}

support::ExitCode run(const Options& options, int argc, char** argv) {
  const support::Device device = support::open_device(options.device, argc, argv);
  support::print_report(options.json_file, device.line());
  Streams streams(device.gpu);
  const Program program(device.gpu, kernels::arguments());
  std::vector<Size> all =
      sizes<16, 32, 64, 128, 256, 512, 1024, 2048, 4096>(device.gpu, streams, program);
  for (Size& size : all)
    for (const Way way : kWays) size.run(way);  // untimed: creates the objects of first use
  const uint32_t rounds =
      support::take_turns(options.rounds, all.size() * kWays.size(), [&](size_t turn) {
        Size& size = all[turn / kWays.size()];
        const size_t way = turn % kWays.size();
        size.ns[way].push_back(size.run(kWays[way]));
      });

  support::Table table({{"arguments\nbytes"},
                        {"written\nns"},
                        {"skipped\nns"},
                        {"skipped,\nto written"},
                        {"95 %"},
                        {"changed\nns"},
                        {"changed,\nto written"},
                        {"95 %"}});
  nlohmann::json results = nlohmann::json::array();
  for (const Size& size : all) {
    const auto& [written, skipped, changed] = size.ns;
    const auto skip = support::median_ratio(skipped, written),
               change = support::median_ratio(changed, written);
    const auto interval = [](const support::MedianInterval& of) {
      return fmt::format("{:.2f}-{:.2f}", of.low, of.high);
    };
    table.add_row({std::to_string(size.bytes), fmt::format("{:.0f}", support::median(written)),
                   fmt::format("{:.0f}", support::median(skipped)),
                   fmt::format("{:.2f}", skip.median), interval(skip),
                   fmt::format("{:.0f}", support::median(changed)),
                   fmt::format("{:.2f}", change.median), interval(change)});
    results.push_back({{"argument_bytes", size.bytes},
                       {"written_ns", support::median(written)},
                       {"skipped_ns", support::median(skipped)},
                       {"changed_ns", support::median(changed)},
                       {"skipped_to_written", {skip.low, skip.median, skip.high}},
                       {"changed_to_written", {change.low, change.median, change.high}}});
  }
  support::print_report(
      options.json_file,
      fmt::format(
          "Launches of a launcher, medians of {} rounds of {}\n({}s on this machine's host):\n\n{}",
          rounds, kLaunches, device.time_name(), table.text()));
  const nlohmann::json report{{"device", device.name()},
                              {"virtual_gpu", device.is_virtual},
                              {"cores", support::usable_cores()},
                              {"rounds", rounds},
                              {"seed", options.rounds.seed},
                              {"launches", kLaunches},
                              {"results", results}};
  support::write_json(options.json_file, report);
  return support::exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app("stream_bench",
                           "Argument size from which skipping is cheaper than writing.");
  Options options;
  support::add_rounds_options(app, options.rounds, 6);
  support::add_device_option(app, options.device);
  support::add_json_option(app, options.json_file);
  return support::run_program(app, argc, argv, [&] { return run(options, argc, argv); });
}
