// Command line and report of sample_sort.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "samples/sample_sort/options.hpp"
#include "samples/sample_sort/report.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/program.hpp"

using namespace uptempo;
using namespace uptempo::sample_sort;
using nlohmann::json;
using test::Approx;
using test::contains;

namespace {

Options parsed(std::vector<std::string> arguments) {
  support::CommandLine app("sample_sort", "");
  Options options;
  declare(app, options);
  const std::optional<std::string> answer = app.parse(std::move(arguments));
  REQUIRE_FALSE(answer.has_value());
  return options;
}

RankTimes times(double sample, double sort, double exchange, double merge, double overlapped,
                double received) {
  return {.phases = {sample, sort, exchange, merge},
          .total = sample + sort + exchange + merge,
          .device_sorting = 1,
          .device_merging = 2,
          .device_busy = 2.5,
          .overlap = overlapped,
          .received = received};
}

Report report() {
  return {.device = "a GPU (gfx90a)",
          .is_virtual = true,
          .mpi = "an MPI",
          .ranks = 2,
          .hosts = 1,
          .workers = 3,
          .workload = {.total = 2000, .chunk = 256, .rounds = 4},
          .verified = true,
          .iterations = {{times(1, 1, 1, 1, 1, 1000), times(9, 9, 9, 9, 9, 1000)},
                         {times(1, 1, 4, 2, 3, 1200), times(2, 1, 6, 1, 3, 800)},
                         {times(1, 1, 1, 1, 0, 1000), times(1, 1, 1, 1, 0, 1000)}}};
}

}  // namespace

TEST_CASE("rounds divide the keys of the fullest rank into chunks of a power of two") {
  const auto workload = [](std::vector<std::string> arguments, uint32_t ranks) {
    return workload_of(parsed(std::move(arguments)), ranks);
  };
  const Workload standard = workload({}, 4);
  CHECK(standard.total == 4 * kDefaultKeys);
  CHECK(standard.chunk == kDefaultKeys / 4);
  CHECK(standard.rounds == 4);
  const Workload odd = workload({"--total", "30011", "--uneven"}, 4);
  CHECK(odd.total == 30011);
  CHECK(odd.chunk == 4096);  // the last rank has 15,006 keys
  CHECK(odd.rounds == 4);
  const Workload one = workload({"--total", "1", "--rounds", "9"}, 16);
  CHECK(one.chunk == 1);
  CHECK(one.rounds == 1);
  CHECK(workload({"--keys", "1000", "--distribution", "skewed"}, 3).distribution ==
        Distribution::skewed);
}

TEST_CASE("keys that MPI cannot count are refused, with the option that helps") {
  const auto problem = [](const std::vector<std::string>& arguments, uint32_t ranks) {
    return test::error_of<support::UsageError>([&] { workload_of(parsed(arguments), ranks); });
  };
  CHECK(problem({"--keys", "1073741824"}, 16) ==
        "--keys: chunks of 268435456 keys on 16 ranks are too large: one rank may receive "
        "4294967296 keys in a round, but MPI counts at most 2147483647; use more --rounds");
  CHECK(problem({"--keys", "1073741824", "--rounds", "16"}, 16) == "no error");
  CHECK(contains(problem({"--total", "68719476736"}, 16), "--total: chunks of"));
  CHECK(contains(problem({"--keys", "18446744073709551615"}, 2), "more than 2^40"));
  CHECK(contains(problem({"--keys", "5", "--total", "6"}, 2), "excludes"));
  CHECK(contains(problem({"--distribution", "sideways"}, 2), "--distribution"));
}

TEST_CASE("fingerprints differ with each option that all ranks must share") {
  const uint64_t standard = fingerprint(parsed({}));
  CHECK(fingerprint(parsed({"--device", "virtual", "--workers", "3"})) == standard);
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--keys", "9"},
                                                    {"--total", "9"},
                                                    {"--uneven"},
                                                    {"--rounds", "5"},
                                                    {"--iterations", "9"},
                                                    {"--seed", "9"},
                                                    {"--distribution", "equal"},
                                                    {"--fail-rank", "0"}})
    CHECK(fingerprint(parsed(arguments)) != standard);
}

TEST_CASE("the ranks of a host share its cores") {
  CHECK(workers_per_rank(16, 16, 4) == 4);
  CHECK(workers_per_rank(16, 16, 5) == 3);
  CHECK(workers_per_rank(2, 2, 4) == 1);
  CHECK(workers_per_rank(1, 16, 2) == 1);  // bound to a core by mpirun
  CHECK(workers_per_rank(4, 16, 1) == 4);
}

TEST_CASE("the report is that of the iteration with the median time of the slowest rank") {
  const json result = json::parse(json_text(report()));
  CHECK(result["virtual_gpu"] == true);
  CHECK(result["seconds_of_iterations"] == json({36.0, 10.0, 4.0}));
  CHECK(result["seconds"] == 10.0);
  CHECK(result["keys_per_second"] == 200.0);
  CHECK(result["received"] == json({1200, 800}));
  CHECK(result["fullest_rank"] == 1.2);
  CHECK(result["overlap"] == 0.6);  // (3 + 3) / (4 + 6)
  CHECK(result["overlaps"] == json({0.75, 0.5}));
  const json& exchange = result["phases"][2];
  CHECK(exchange["name"] == "exchange");
  CHECK(exchange["seconds_least"] == 4.0);
  CHECK(exchange["seconds_mean"] == 5.0);
  CHECK(exchange["seconds_most"] == 6.0);
  CHECK(exchange["share"] == Approx(10.0 / 18));
  CHECK(result["device_times"][2]["name"] == "busy");
  CHECK(result["device_times"][2]["share"] == Approx(5.0 / 18));
}

TEST_CASE("the table names the virtual GPU at its times, and wrong results") {
  Report wrong = report();
  const std::string text = table(wrong);
  CHECK(contains(text, "2 ranks on 1 host, one GPU each with 3 workers; an MPI\n"));
  CHECK(contains(text, "median of 3 iterations, virtual GPU time\n"));
  CHECK(contains(text, "busy in 60 % of the exchanges' time (ranks: 50 to 75 %)\n"));
  CHECK(contains(text, "Verified: "));
  wrong.verified = false;
  wrong.is_virtual = false;
  wrong.workers = 0;
  CHECK(contains(table(wrong), "WRONG RESULTS"));
  CHECK(contains(table(wrong), "iterations, time\n"));
  CHECK_FALSE(contains(table(wrong), "worker"));
  CHECK(json::parse(json_text(wrong))["verified"] == false);
}
