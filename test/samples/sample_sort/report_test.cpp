// Workloads and the report of sample_sort.
#include "samples/sample_sort/report.hpp"

#include <stdexcept>
#include <string>

#include "samples/sample_sort/options.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/text.hpp"

using namespace uptempo;
using namespace uptempo::sample_sort;
using test::contains;

namespace {

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
  return {.device = "gfx90a",
          .is_virtual = true,
          .mpi = "an MPI",
          .ranks = 2,
          .hosts = 1,
          .workload = {.total = 2000, .chunk = 256, .rounds = 4},
          .verified = true,
          .iterations = {{times(1, 1, 1, 1, 1, 1000), times(9, 9, 9, 9, 9, 1000)},
                         {times(1, 1, 4, 2, 3, 1200), times(2, 1, 6, 1, 3, 800)},
                         {times(1, 1, 1, 1, 0, 1000), times(1, 1, 1, 1, 0, 1000)}}};
}

}  // namespace

TEST_CASE("rounds divide the keys of the fullest rank into chunks of a power of two") {
  const Workload standard = workload_of({}, 4);
  CHECK(standard.total == 4 * kDefaultKeys);
  CHECK(standard.chunk == kDefaultKeys / 4);
  CHECK(standard.rounds == 4);
  const Workload odd = workload_of({.total = 30011, .uneven = true}, 4);
  CHECK(odd.total == 30011);
  CHECK(odd.chunk == 4096);  // the last rank has 15,006 keys
  CHECK(odd.rounds == 4);
  const Workload one = workload_of({.total = 1, .rounds = 9}, 16);
  CHECK(one.chunk == 1);
  CHECK(one.rounds == 1);
}

TEST_CASE("keys that MPI cannot count are refused, with the option that helps") {
  const auto problem = [](const Options& options, uint32_t ranks) {
    return test::error_of<std::invalid_argument>([&] { workload_of(options, ranks); });
  };
  CHECK(problem({.keys = 1073741824}, 16) ==
        "--keys: chunks of 268435456 keys on 16 ranks are too large: one rank may receive "
        "4294967296 keys in a round, but MPI counts at most 2147483647; use more --rounds");
  CHECK(problem({.keys = 1073741824, .rounds = 16}, 16) == "no error");
  CHECK(contains(problem({.total = 68719476736}, 16), "--total: chunks of"));
  CHECK(contains(problem({.keys = UINT64_MAX}, 2), "more than 2^40"));
  CHECK(problem({.fail_rank = 2}, 2) == "--fail-rank: there is no rank 2 among 2 ranks");
}

TEST_CASE("the report is that of the iteration with the median time of the slowest rank") {
  const std::string text = table(report());
  CAPTURE(text);
  CHECK(contains(text, "gfx90a: 2 ranks on 1 host, one GPU each; an MPI\n"));
  CHECK(contains(text, "10000.000 ms, median of 3 iterations, virtual GPU time\n"));  // 36, 10, 4 s
  // (3 + 3) / (4 + 6)
  CHECK(contains(text, "busy in 60 % of the exchanges' time (ranks: 50 to 75 %)\n"));
  CHECK(contains(text, "the fullest rank received 1.20 times the mean\n"));
  CHECK(contains(text, "exchange          4000.000   5000.000   6000.000  55.6 %\n"));
  CHECK(contains(text, "device: busy      2500.000   2500.000   2500.000  27.8 %\n"));
  CHECK(contains(text, "\nVerified: "));
}

TEST_CASE("wrong results are named, and only a virtual GPU's times are called so") {
  Report wrong = report();
  wrong.verified = false;
  wrong.is_virtual = false;
  CHECK(contains(table(wrong), "WRONG RESULTS"));
  CHECK(contains(table(wrong), "iterations, time\n"));
}
