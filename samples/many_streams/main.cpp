// Cost of a launch on the default stream beside idle streams. The default stream has legacy order:
// work on it follows all earlier work on every blocking stream and precedes all later work on them.
// A runtime might therefore inspect each stream, or put a marker on each.
//
//   many_streams [--rounds N] [--seed N] [--device D] [--json FILE]
//
// Exit code: 0 all results are right, 1 they are not or the device failed, 2 wrong command line, 77
// no such device.
#include <fmt/format.h>
#include <uptempo/kernels/workgroups_of_256.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <nlohmann/json.hpp>

#include "tools/support/command_line.hpp"
#include "tools/support/device.hpp"
#include "tools/support/program.hpp"
#include "tools/support/rounds.hpp"
#include "tools/support/statistics.hpp"
#include "tools/support/table.hpp"

namespace {

using namespace uptempo;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kElements = 256, kLaunches = 100, kFinishes = 20;

double ns_since(Clock::time_point begin, uint32_t times) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / times;
}

// A default stream beside a number of blocking streams, each of which has run work and is idle.
class Row {
 public:
  Row(const Agent& gpu, const Program& program, uint32_t idle_streams)
      : chain_(program.kernel<uint32_t*, uint32_t>("chain_increment")),
        values_(gpu, kElements),
        streams_(gpu, {.legacy_default = true}) {
    std::ranges::fill(values_.span(), 0u);
    for (uint32_t i = 0; i < idle_streams; ++i) launch(idle_.emplace_back(streams_), i);
    streams_.synchronize();
  }

  void measure() {
    Stream& stream = streams_.default_stream();
    Clock::time_point begin = Clock::now();
    for (uint32_t i = 0; i < kLaunches; ++i) launch(stream, i);
    launch_ns.push_back(ns_since(begin, kLaunches));
    streams_.synchronize();

    const Counters before = Counters::now();
    begin = Clock::now();
    for (uint32_t i = 0; i < kFinishes; ++i) {
      launch(stream, i);
      streams_.synchronize(WaitPolicy::active());
    }
    launch_sync_ns.push_back(ns_since(begin, kFinishes));
    packets += static_cast<double>((Counters::now() - before).packets) / kFinishes;
  }
  bool is_right() const { return std::ranges::count(values_.span(), expected_) == kElements; }

  std::vector<double> launch_ns, launch_sync_ns;  // of each round
  double packets = 0;                             // per launch and finish, summed over the rounds

 private:
  void launch(Stream& stream, uint32_t addend) {
    stream.launch(chain_, Grid{kElements}.by(256), values_.data(), addend);
    expected_ = expected_ * 3 + addend;
    if (&stream == &streams_.default_stream()) return;
    streams_.synchronize();  // idle streams are not ordered among themselves
  }

  Kernel<uint32_t*, uint32_t> chain_;
  PinnedBuffer<uint32_t> values_;
  uint32_t expected_ = 0;
  Streams streams_;
  std::deque<Stream> idle_;
};

support::ExitCode run(const std::string& choice, const support::Rounds& rounds,
                      const std::string& json_file, int argc, char** argv) {
  const support::Device device = support::open_device(choice, argc, argv);
  support::print_report(json_file, device.line());
  const Program program(device.gpu, builtin_kernels::workgroups_of_256());
  constexpr std::array<uint32_t, 5> idle_streams{0, 1, 8, 32, 64};
  std::deque<Row> rows;
  for (const uint32_t idle : idle_streams) rows.emplace_back(device.gpu, program, idle);
  const uint32_t finished =
      support::take_turns(rounds, rows.size(), [&](size_t turn) { rows[turn].measure(); });

  support::Table table({{"idle\nstreams"},
                        {"ns per\nlaunch"},
                        {"ns per launch\nand finish"},
                        {"packets per launch\nand finish"}});
  nlohmann::ordered_json json{{"device", device.name()},
                              {"virtual_gpu", device.is_virtual},
                              {"rounds", finished},
                              {"verified", true},
                              {"rows", nlohmann::ordered_json::array()}};
  bool right = true;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double launch_ns = support::median(rows[i].launch_ns);
    const double launch_sync_ns = support::median(rows[i].launch_sync_ns);
    const double packets = rows[i].packets / finished;
    right = right && rows[i].is_right();
    table.add_row({std::to_string(idle_streams[i]), fmt::format("{:.0f}", launch_ns),
                   fmt::format("{:.0f}", launch_sync_ns), fmt::format("{:.4g}", packets)});
    json["rows"].push_back({{"idle_streams", idle_streams[i]},
                            {"launch_ns", launch_ns},
                            {"launch_sync_ns", launch_sync_ns},
                            {"packets", packets}});
  }
  json["verified"] = right;
  support::print_report(
      json_file,
      fmt::format("The default stream (legacy order) beside idle blocking streams\nMedian of {} "
                  "rounds of {} "
                  "launches,\nand of {} launches with a finish each; {}\n\n{}\n{}\n",
                  finished, kLaunches, kFinishes, device.time_name(), table.text(),
                  right ? "Verified: all launches were executed, in order." : "WRONG RESULTS."));
  if (!json_file.empty()) support::write_json(json_file, json);
  return right ? support::exit_ok : support::exit_measured_failure;
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app(
      "many_streams",
      "Times launches on the default stream beside 0, 1, 8, 32 and 64 idle streams\n"
      "that it is ordered with.");
  std::string device = "auto", json_file;
  support::Rounds rounds;
  support::add_rounds_options(app, rounds, 1);
  support::add_device_option(app, device);
  support::add_json_option(app, json_file);
  return support::run_program(app, argc, argv,
                              [&] { return run(device, rounds, json_file, argc, argv); });
}
