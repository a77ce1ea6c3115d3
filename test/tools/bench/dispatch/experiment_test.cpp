// How rows are timed and how their runs are checked. On a device, because the checks read what it
// executed.
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>

#include <uptempo/dispatch/batch_submitter.hpp>
#include <uptempo/runtime/runtime.hpp>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"
#include "tools/bench/dispatch/experiment.hpp"
#include "tools/bench/dispatch/report.hpp"

using namespace uptempo;
using namespace uptempo::bench;

namespace {

// Takes a fixed time and does nothing; records its calls.
class Idle : public Row {
 public:
  explicit Idle(std::string name, std::vector<std::string>* log = nullptr)
      : name_(std::move(name)), log_(log) {}
  std::string_view name() const override { return name_; }
  bool has_submit() const override { return name_ != "waits"; }
  uint32_t max_dispatches() const override { return name_ == "short" ? 1000 : kMaxDispatches; }
  void prepare(const Load&) override { note("prepare"); }
  void close_gate() override { note("close"); }
  void open_gate() override { note("open"); }
  void submit(const Load&) override { note("submit"); }
  void wait() override { note("wait"); }

 private:
  void note(const char* what) {
    if (log_ != nullptr) log_->push_back(name_ + " " + what);
  }
  const std::string name_;
  std::vector<std::string>* const log_;
};

class CountedCheck : public Check {
 public:
  void before(const Row&, const Load&) override { ++befores; }
  void after(const Row& row, const Load& load) override {
    ++afters[std::string(row.name())];
    if (fail_at != 0 && load.batch == fail_at) throw std::runtime_error("lost one");
  }
  uint32_t befores = 0, fail_at = 0;
  std::map<std::string, uint32_t> afters;
};

using uptempo::test::error_of;
using uptempo::test::OnDevice;

Rows rows_of(std::initializer_list<const char*> names, std::vector<std::string>* log = nullptr) {
  Rows rows;
  for (const char* name : names) rows.push_back(std::make_unique<Idle>(name, log));
  return rows;
}

}  // namespace

TEST_CASE("every row is timed once a round in each of its phases, warm, and every run is checked") {
  CountedCheck check;
  const Results results =
      run(rows_of({"plain", "waits", "short"}), check, {1, 8192}, {.count = 20});
  CHECK(results.all.size() == 4 + 2 + 2);
  for (const Series& series : results.all) CHECK(series.ns_per_dispatch.size() == 20);
  CHECK(results.find("waits", 1, Phase::submit) == nullptr);
  CHECK(results.find("short", 8192, Phase::complete) == nullptr);
  CHECK(results.find("plain", 8192, Phase::submit) != nullptr);
  // 20 rounds, two runs each: the first one is not timed.
  CHECK(check.afters ==
        std::map<std::string, uint32_t>{{"plain", 160}, {"waits", 80}, {"short", 80}});
  CHECK(check.befores == 320);
}

TEST_CASE(
    "a submission is timed after a gate that opens before the wait, a completion without a gate") {
  std::vector<std::string> log;
  CountedCheck check;
  run(rows_of({"row"}, &log), check, {1}, {.count = 1, .seed = 7});
  using Steps = std::vector<std::string>;
  const Steps submit{"row prepare", "row close", "row submit", "row open", "row wait"};
  const Steps complete{"row prepare", "row submit", "row wait"};
  const auto in_order = [](std::initializer_list<Steps> runs) {
    Steps all;
    for (const Steps& steps : runs) all.insert(all.end(), steps.begin(), steps.end());
    return all;
  };
  CHECK((log == in_order({submit, submit, complete, complete}) ||
         log == in_order({complete, complete, submit, submit})));
}

TEST_CASE("a row runs untimed for as many dispatches as it needs to be warm") {
  CountedCheck check;
  const Results results = run(rows_of({"plain"}), check, {1, 8192}, {.count = 20}, 16384);
  for (const Series& series : results.all) CHECK(series.ns_per_dispatch.size() == 20);
  // In two phases 18 runs of 960 dispatches and 2 of 8,192 before each that is timed.
  CHECK(check.befores == 2 * 20 * (19 + 3));
}

TEST_CASE("rows alternate in an order that depends on the seed alone") {
  const auto order = [](uint64_t seed) {
    std::vector<std::string> log;
    CountedCheck check;
    run(rows_of({"a", "b", "c"}, &log), check, {1, 8}, {.count = 20, .seed = seed});
    return log;
  };
  CHECK(order(1) == order(1));
  CHECK(order(1) != order(2));
}

TEST_CASE("a failed check ends the run") {
  CountedCheck check;
  check.fail_at = 120;
  CHECK(error_of([&] { run(rows_of({"row"}), check, {1, 120}, {.count = 20}); }) == "lost one");
}

TEST_CASE("a row is represented by its fastest variant, batch by batch") {
  Results results{{{"floor/a", 1, Phase::submit, {3, 4, 5}},
                   {"floor/a", 8, Phase::submit, {1, 1, 1}},
                   {"other", 1, Phase::submit, {9, 9, 9}},
                   {"floor/b", 1, Phase::submit, {2, 2, 9}},
                   {"floor/b", 8, Phase::submit, {2, 2, 2}}}};
  results.keep_best_variants();
  CHECK(results.all == std::vector<Series>{{"floor", 1, Phase::submit, {2, 2, 9}},
                                           {"floor", 8, Phase::submit, {1, 1, 1}},
                                           {"other", 1, Phase::submit, {9, 9, 9}}});
}

TEST_CASE("a ratio is the median of the rounds' ratios") {
  const Series a{"a", 1, Phase::submit, {1, 20, 3}}, b{"b", 1, Phase::submit, {2, 10, 3}};
  CHECK(ratio(a, b).median == 1);
  CHECK(ratio(a, b).low == 0.5);
  CHECK(ratio(a, b).high == 2);
}

TEST_CASE("the report has each figure with its interval, and the ratio to the careful loop") {
  const Report report{.device = "some GPU",
                      .rounds = 3,
                      .seed = 5,
                      .cores = 2,
                      .peers = {{"HIP", "not gated", "HIP 5.2"}, {"PoCL", {}, {}, "not installed"}},
                      .batches = {1},
                      .results = {{{"hsa-careful", 1, Phase::submit, {10, 10, 10}},
                                   {"uptempo-batch", 1, Phase::submit, {11, 12, 13}}}}};
  const nlohmann::ordered_json out = json(report);
  CHECK(out["results"][1] == nlohmann::ordered_json{{"name", "uptempo-batch"},
                                                    {"batch", 1},
                                                    {"phase", "submit"},
                                                    {"ns_per_dispatch", 12.0},
                                                    {"low", 11.0},
                                                    {"high", 13.0},
                                                    {"allocations", nullptr},
                                                    {"system_calls", nullptr},
                                                    {"hsa_calls", nullptr},
                                                    {"doorbells", nullptr},
                                                    {"hdp_flushes", nullptr},
                                                    {"read_backs", nullptr}});
  REQUIRE(out["ratios"].size() == 1);
  CHECK(out["ratios"][0]["name"] == "uptempo-batch");
  CHECK(out["ratios"][0]["ratio"] == 1.2);
  CHECK(table(report).find("uptempo-batch") != std::string::npos);
  CHECK(table(report).find("1.20 (1.10 .. 1.30)") != std::string::npos);
}

TEST_CASE("tables of all batch lengths and wide figures fit 80 columns") {
  Report report{.device = "some GPU", .batches = {1, 8, 120, 1024, 8192}, .results = {}};
  for (const char* name : {"hsa-careful", "uptempo-replay-patched-device"})
    for (const uint32_t batch : report.batches)
      for (const Phase phase : {Phase::submit, Phase::complete})
        report.results.all.push_back({name, batch, phase, {1234.5, 99999.5, 123456.5}});
  std::istringstream lines(table(report));
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(line.size() <= 80);
  }
  for (const uint32_t batch : report.batches)
    CHECK(table(report).find(std::to_string(batch)) != std::string::npos);
}

TEST_CASE("published figures of others are distinguished from measurements, with their source") {
  const Report report{.device = "some GPU",
                      .batches = {1024},
                      .results = {{{"a", 1024, Phase::submit, {1, 1, 1}}}}};
  CHECK(table(report).find("6.9 us for 1024 nodes, 6.7 ns each (averages of\ngithub.com/ROCm") !=
        std::string::npos);
  const nlohmann::ordered_json out = json(report);
  CHECK(out["results"].size() == 1);
  REQUIRE(out["published"].size() == 2);
  CHECK(out["published"][1]["batch"] == 8192);
  CHECK(out["published"][1]["source"].get<std::string>().find("pull request 4831") !=
        std::string::npos);
}

TEST_CASE_METHOD(
    OnDevice,
    "a dispatch that was lost or executed twice is found, by its marks and by the device's count") {
  const Workload workload(gpu);
  const Idle row("row");
  const Load load{.batch = 4, .repeats = 1};
  Queue queue(workload.gpu);
  BatchSubmitter batch(queue);
  const auto launch = [&](std::initializer_list<uint32_t> dispatches) {
    for (const uint32_t i : dispatches)
      batch.dispatch(workload.tally, Grid{Workload::kItems}, workload.tallies.data(), i);
    batch.submit().wait();
  };
  const auto tallies = check_tallies(workload), counts = check_device_counts(workload);
  const auto outcome = [&](Check& check, std::initializer_list<uint32_t> dispatches) {
    check.before(row, load);
    launch(dispatches);
    return error_of([&] { check.after(row, load); });
  };
  CHECK(outcome(*tallies, {0, 1, 2, 3}) == "no error");
  CHECK(outcome(*tallies, {0, 1, 3}) == "row (batches of 4): dispatch 2 of 4 was executed 0 times");
  CHECK(outcome(*tallies, {0, 1, 1, 2, 3}) ==
        "row (batches of 4): dispatch 1 of 4 was executed 2 times");
  CHECK(outcome(*counts, {0, 1, 2, 3}) == "no error");
  CHECK(outcome(*counts, {0, 1, 3}) ==
        "row (batches of 4): 4 dispatches were submitted, the device completed 3");
}
