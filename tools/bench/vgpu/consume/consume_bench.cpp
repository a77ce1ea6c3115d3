// Time of the command processor per packet and per round trip, through ROCr, compared with the
// machine's own limits. README.md of this folder explains the rows.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>

#include "tools/bench/vgpu/consume/clock.hpp"
#include "tools/bench/vgpu/consume/cores.hpp"
#include "tools/bench/vgpu/consume/floors.hpp"
#include "tools/bench/vgpu/consume/report.hpp"
#include "tools/bench/vgpu/consume/rows.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/program.hpp"
#include "tools/support/rounds.hpp"
#include "tools/support/statistics.hpp"
#include "tools/vgpu/launch.hpp"

namespace {

using namespace uptempo;
using namespace uptempo::vgpu::consume;
using support::median;

struct Options {
  support::Rounds rounds;
  std::string json_file;
  bool bars = false;
};

constexpr unsigned kSleepUs = 3000;  // the device sleeps after 0.4 ms
constexpr size_t kTrips = 1000, kWakeUps = 8;
constexpr unsigned kFedRings = 4;

// Number of queues, and enough packets for some milliseconds.
struct BusyQueues {
  size_t queues;
  uint32_t packets;
  std::string_view cost, share, jain;
};
constexpr BusyQueues kBusy[] = {{1, 131072, "busy-1", "busy-1-least/most", "busy-1-jain"},
                                {4, 65536, "busy-4", "busy-4-least/most", "busy-4-jain"},
                                {16, 16384, "busy-16", "busy-16-least/most", "busy-16-jain"}};

struct Backlog {
  size_t queues;
  uint32_t packets;
  std::string_view trip, overtaken;
};
constexpr Backlog kBacklogs[] = {{1, 8192, "beside-1-short", "beside-1-short-overtaken"},
                                 {1, 131072, "beside-1", "beside-1-overtaken"},
                                 {15, 16384, "beside-15", "beside-15-overtaken"}};

const std::vector<Bar> kBars{{"ring-barriers", 60},          {"ring-dispatches", 100},
                             {"trip-barrier", 2000},         {"trip-dispatch", 2000},
                             {"beside-1", 1.2, false, true}, {"busy-4-least/most", 0.9, true},
                             {"busy-4-jain", 0.99, true},    {"busy-16-least/most", 0.9, true},
                             {"busy-16-jain", 0.99, true},   {"idle", 1}};

double ninth_decile(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() * 9 / 10];
}

Rows declared() {
  Rows rows;
  rows.declare("floor-take", "ns/packet");
  rows.declare("ring-barriers", "ns/packet", "floor-take");
  rows.declare("ring-dispatches", "ns/packet", "floor-take");
  rows.declare("fed-barriers", "ns/packet");
  rows.declare("fed-dispatches", "ns/packet");
  rows.declare("floor-echo", "ns");
  rows.declare("trip-barrier", "ns", "floor-echo");
  rows.declare("trip-dispatch", "ns", "floor-echo");
  rows.declare("trip-event", "ns", "floor-echo");
  rows.declare("floor-futex", "ns");
  rows.declare("asleep-barrier", "ns", "floor-futex");
  rows.declare("asleep-doorbell", "ns");
  for (const Backlog& backlog : kBacklogs) {
    rows.declare(backlog.trip, "ns",
                 backlog.trip == "beside-1" ? "beside-1-short" : "trip-barrier");
    rows.declare(backlog.overtaken, "packets");
  }
  for (const BusyQueues& busy : kBusy) {
    rows.declare(busy.cost, "ns/packet");
    if (busy.queues == 1) continue;
    rows.declare(busy.share, "worst window");
    rows.declare(busy.jain, "worst window");
  }
  rows.declare("lone-packet", "us of CPU");
  rows.declare("idle", "% of a core");
  return rows;
}

// Measures one value of each row, except the last two rows.
std::vector<std::function<void()>> round_of(Measurer& measure, Rows& rows, int core) {
  const auto add = [&rows](std::string_view name, double value) { rows.add(name, value); };
  std::vector<std::function<void()>> round{
      [=, &measure] {
        add("floor-take", take_ring(measure.ring_queue(), measure.packet(Kind::barrier), core));
      },
      [=, &measure] { add("ring-barriers", measure.full_ring(Kind::barrier)); },
      [=, &measure] { add("ring-dispatches", measure.full_ring(Kind::dispatch)); },
      [=, &measure] { add("fed-barriers", measure.fed_ring(Kind::barrier, kFedRings)); },
      [=, &measure] { add("fed-dispatches", measure.fed_ring(Kind::dispatch, kFedRings)); },
      [=] { add("floor-echo", median(echoes(kTrips, core))); },
      [=, &measure] { add("trip-barrier", median(measure.trips(Kind::barrier, kTrips))); },
      [=, &measure] { add("trip-dispatch", median(measure.trips(Kind::dispatch, kTrips))); },
      [=, &measure] { add("trip-event", median(measure.trips(Kind::event, kTrips))); },
      [=] { add("floor-futex", median(futex_echoes(kWakeUps, core, kSleepUs))); },
      [=, &measure] {
        add("asleep-barrier", median(measure.trips(Kind::barrier, kWakeUps, kSleepUs)));
        add("asleep-doorbell", median(measure.doorbells()));
      }};
  for (const Backlog& backlog : kBacklogs)
    round.push_back([=, &measure] {
      const Measurer::Beside beside = measure.trips_beside(backlog.queues, backlog.packets);
      add(backlog.trip, median(beside.trips));
      add(backlog.overtaken, ninth_decile(beside.overtaken));
    });
  for (const BusyQueues& busy : kBusy)
    round.push_back([=, &measure] {
      const Measurer::Busy result = measure.busy_queues(busy.queues, busy.packets);
      add(busy.cost, result.ns_per_packet);
      if (busy.queues == 1) return;
      add(busy.share, result.fairness.least_to_most);
      add(busy.jain, result.fairness.jain);
    });
  return round;
}

void measured(const std::function<void()>& row) {
  constexpr double kPatienceNs = 60e9;
  for (const double begin = now_ns();;) {
    try {
      return row();
    } catch (const Interrupted&) {
      if (now_ns() - begin > kPatienceNs) throw;
    }
  }
}

support::ExitCode run(const Options& options, int argc, char** argv) {
  try {
    vgpu::choose_device(vgpu::DeviceChoice::virtual_gpu, argc, argv, {"--null-kernels"});
  } catch (const std::runtime_error& error) {
    throw support::Unavailable(error.what());
  }
  if (const char* null_kernels = std::getenv("UPTEMPO_VGPU_NULL_KERNELS");
      null_kernels == nullptr || std::string_view(null_kernels) != "1")
    throw support::UsageError(
        "this device executes kernels; start the program without uptempo-vgpu, or with "
        "uptempo-vgpu "
        "--null-kernels");
  Cores cores{};
  try {
    cores = pin_host();
  } catch (const std::runtime_error& error) {
    throw support::Unavailable(error.what());
  }
  const Gpu gpu;
  Measurer measure(gpu);
  pin_device(cores.other);

  Rows rows = declared();
  const std::vector<std::function<void()>> round = round_of(measure, rows, cores.other);
  const uint32_t rounds =
      support::take_turns(options.rounds, round.size(), [&](size_t row) { measured(round[row]); });
  support::Progress progress;
  for (int sample = 0; sample < 6; ++sample) {
    progress.show("idle device");
    rows.add("lone-packet", measure.lone_packet_cpu_ns(20) / 1000);
    rows.add("idle", measure.idle_share(16, 500) * 100);
  }
  progress.clear();

  const std::vector<Judged> bars = judge(rows, kBars);
  const Conditions conditions{gpu.name(), rounds, options.rounds.seed, cores.host, cores.other};
  support::print_report(
      options.json_file,
      fmt::format(
          "Device: virtual GPU, {}; kernels are not executed\n{} rounds; the program on core {}, "
          "the device on core {}\n\n{}",
          conditions.device, rounds, cores.host, cores.other, table(rows, bars)));
  support::write_json(options.json_file, json(conditions, rows, bars));
  const bool met = std::ranges::all_of(bars, &Judged::met);
  return options.bars && !met ? support::exit_measured_failure : support::exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app("vgpu_consume_bench",
                           "Times the virtual GPU's command processor: packets and round trips.");
  Options options;
  support::add_rounds_options(app, options.rounds, 6);
  app.flag("--bars", options.bars, "Exit with 1 if a bar is missed");
  support::add_json_option(app, options.json_file);
  return support::run_program(app, argc, argv, [&] { return run(options, argc, argv); });
}
