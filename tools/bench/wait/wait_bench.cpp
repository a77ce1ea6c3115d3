// wait_bench: latency and CPU time of each way to wait, for work from a microsecond to ten
// milliseconds. See README.md.
#include <fmt/format.h>
#include <time.h>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
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
using std::chrono::microseconds;
using std::chrono::nanoseconds;

struct Options {
  support::Rounds rounds;
  bool second = false;
  std::string device = "auto";
  std::string json_file;
};

struct Way {
  std::string name;
  WaitPolicy policy;
};

std::vector<Way> ways() {
  std::vector<Way> all{{"active", WaitPolicy::active()}};
  for (const int spin : {5, 20, 50, 100, 200})
    all.push_back({fmt::format("hybrid {}", spin), {.spin = microseconds(spin)}});
  all.push_back({"blocked", WaitPolicy::blocked()});
  return all;
}

// Nanoseconds on the clock of the device's times (HSA_SYSTEM_INFO_TIMESTAMP).
uint64_t device_now() {
  static const uint64_t hz = [] {
    uint64_t value = 0;
    check(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &value), "hsa_system_get_info");
    return value;
  }();
  uint64_t ticks = 0;
  check(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &ticks), "hsa_system_get_info");
  return static_cast<uint64_t>(static_cast<double>(ticks) * 1e9 / static_cast<double>(hz));
}

nanoseconds cpu_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

// One wait.
struct Sample {
  double work_us = 0;    // the kernel's duration on the device's clock
  double late_us = 0;    // from the kernel's end to the return of wait()
  double waited_us = 0;  // from the submission to the return
  double cpu_us = 0;     // CPU time of the waiting thread in that interval
};

// A second thread that waits for the same completions with the same policy.
class Second {
 public:
  Second() : thread_([this] { run(); }) {}
  ~Second() {
    stop_ = true;
    ask(Completion{}, nullptr);
    thread_.join();
  }
  Second(const Second&) = delete;
  Second& operator=(const Second&) = delete;

  void ask(const Completion& completion, const WaitPolicy* policy) {
    completion_ = completion;
    policy_ = policy;
    ++asked_;
    asked_.notify_one();
  }
  // The time at which wait() returned, and the CPU time that it took.
  std::pair<uint64_t, nanoseconds> answer() {
    while (answered_ != asked_) answered_.wait(answered_);
    return {end_, spent_};
  }

 private:
  void run() {
    for (uint32_t round = 0;; answered_ = round, answered_.notify_one()) {
      asked_.wait(round++);
      if (stop_) return;
      const nanoseconds cpu = cpu_time();
      completion_.wait(*policy_);
      spent_ = cpu_time() - cpu;
      end_ = device_now();
    }
  }

  std::atomic<uint32_t> asked_{0}, answered_{0};
  std::atomic<bool> stop_{false};
  Completion completion_;
  const WaitPolicy* policy_ = nullptr;
  uint64_t end_ = 0;
  nanoseconds spent_{0};
  std::thread thread_;
};

class Bench {
 public:
  Bench(const support::Device& device, bool with_second)
      : program_(device.gpu, builtin_kernels::probes()),
        spin_(program_.kernel<uint32_t*, uint32_t, uint32_t>("spin")),
        queue_(device.gpu),
        batch_(queue_, {.timing = Timing::batch}),
        out_(device.gpu, 2) {
    // Duration of one turn of the kernel's loop, from two lengths: the rest is equal in both.
    std::vector<double> slopes;
    for (int i = 0; i < 15; ++i) {
      const double brief = run(1'000, ways().front()).work_us;
      slopes.push_back((run(11'000, ways().front()).work_us - brief) / 10'000);
    }
    turn_us_ = support::median(slopes);
    if (with_second) second_.emplace();
  }

  uint32_t turns_for(double work_us) const { return static_cast<uint32_t>(work_us / turn_us_); }

  // Throws std::runtime_error if wait() returned before the kernel's result was visible.
  Sample run(uint32_t turns, const Way& way) {
    ++flag_;
    batch_.dispatch(spin_, Grid{1}, out_.data(), turns, flag_);
    const uint64_t start = device_now();
    const nanoseconds cpu = cpu_time();
    const Completion completion = batch_.submit();
    if (second_) second_->ask(completion, &way.policy);
    completion.wait(way.policy);
    nanoseconds spent = cpu_time() - cpu;
    uint64_t end = device_now();
    if (second_) std::tie(end, spent) = second_->answer();
    if (out_[0] != flag_)
      throw std::runtime_error(
          fmt::format("{}: the wait returned before the kernel's result was visible", way.name));
    const PacketTime kernel = completion.times().front();
    const auto us = [](uint64_t from, uint64_t to) {
      return (static_cast<double>(to) - static_cast<double>(from)) / 1e3;
    };
    return {.work_us = us(kernel.start_ns, kernel.end_ns),
            .late_us = us(kernel.end_ns, end),
            .waited_us = us(start, end),
            .cpu_us = static_cast<double>(spent.count()) / 1e3};
  }

 private:
  Program program_;
  Kernel<uint32_t*, uint32_t, uint32_t> spin_;
  Queue queue_;
  BatchSubmitter batch_;
  PinnedBuffer<uint32_t> out_;
  uint32_t flag_ = 0;
  double turn_us_ = 1;
  std::optional<Second> second_;
};

struct Row {
  double asked_us;
  const Way* way;
  std::vector<double> work, late, cores;
};

support::ExitCode run(const Options& options, int argc, char** argv) {
  const support::Device device = support::open_device(options.device, argc, argv);
  support::print_report(options.json_file, device.line());
  Bench bench(device, options.second);
  const std::vector<Way> all = ways();
  // For short work a second thread starts waiting too late.
  const std::vector<double> lengths =
      options.second ? std::vector<double>{300, 1'000, 3'000, 10'000}
                     : std::vector<double>{1, 10, 30, 100, 300, 1'000, 3'000, 10'000};
  std::vector<Row> rows;
  for (const double length : lengths)
    for (const Way& way : all) rows.push_back({length, &way, {}, {}, {}});

  const uint32_t rounds = support::take_turns(options.rounds, rows.size(), [&](size_t r) {
    Row& row = rows[r];
    const Sample sample = bench.run(bench.turns_for(row.asked_us), *row.way);
    row.work.push_back(sample.work_us);
    row.late.push_back(sample.late_us);
    row.cores.push_back(100 * sample.cpu_us / sample.waited_us);
  });

  support::Table table({{"work\nus", support::Align::right},
                        {"wait", support::Align::left},
                        {"late\nus", support::Align::right},
                        {"late, to\nactive", support::Align::right},
                        {"95 %", support::Align::right},
                        {"of a core\n%", support::Align::right}});
  nlohmann::json results = nlohmann::json::array();
  for (size_t r = 0; r < rows.size(); ++r) {
    const Row& row = rows[r];
    const Row& active = rows[r / all.size() * all.size()];  // the row of the same work length
    const auto ratio = support::median_ratio(row.late, active.late);
    const double work = support::median(row.work), late = support::median(row.late),
                 cores = support::median(row.cores);
    table.add_row({row.way == all.data() ? fmt::format("{:.0f}", work) : "", row.way->name,
                   fmt::format("{:.1f}", late), fmt::format("{:.2f}", ratio.median),
                   fmt::format("{:.2f}-{:.2f}", ratio.low, ratio.high),
                   fmt::format("{:.1f}", cores)});
    results.push_back({{"work_us", work},
                       {"asked_us", row.asked_us},
                       {"wait", row.way->name},
                       {"late_us", late},
                       {"late_to_active", {ratio.low, ratio.median, ratio.high}},
                       {"core_per_cent", cores}});
  }
  support::print_report(
      options.json_file,
      fmt::format("Waits of {} thread, medians of {} rounds ({}s on this machine):\n\n{}",
                  options.second ? "a second" : "one", rounds, device.time_name(), table.text()));
  const nlohmann::json report{{"device", device.name()},
                              {"virtual_gpu", device.is_virtual},
                              {"cores", support::usable_cores()},
                              {"rounds", rounds},
                              {"second_waiter", options.second},
                              {"seed", options.rounds.seed},
                              {"default_spin_us", nanoseconds(WaitPolicy{}.spin).count() / 1000},
                              {"results", results}};
  support::write_json(options.json_file, report);
  return support::exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app("wait_bench",
                           "Cost of waiting: how late each wait returns, and its share of a core.");
  Options options;
  support::add_rounds_options(app, options.rounds, 6);
  app.flag("--second", options.second, "Also time a second thread that waits for the same work");
  support::add_device_option(app, options.device);
  support::add_json_option(app, options.json_file);
  return support::run_program(app, argc, argv, [&] { return run(options, argc, argv); });
}
