// The parts of bitonic_sort that need no device: network, switches, measurement and table.
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "samples/bitonic_sort/network.hpp"
#include "samples/bitonic_sort/report.hpp"
#include "test/support/catch.hpp"
#include "test/support/text.hpp"

using namespace uptempo;
using namespace uptempo::sort;
using uptempo::test::Approx;
using uptempo::test::contains;

namespace {

// The figures of AMD's article, as if every iteration took exactly that long.
Report article_report() {
  const std::vector<double> us{1943, 1906, 1869, 1665, 1221, 1137};
  size_t call = 0;
  auto rungs = measure(ladder(), 3, [&](const Switches& switches) {
    Iteration iteration{.us = us[call++ % us.size()], .counts = {}};
    iteration.counts.host_waits = switches.avoid_host_sync ? 1 : 120;
    iteration.counts.bytes_staged = switches.pinned_host ? 0 : 262144;
    return iteration;
  });
  return {.is_virtual = true,
          .length = 32768,
          .kernels = 120,
          .workgroup = 256,
          .descending = false,
          .rungs = std::move(rungs)};
}

void check_width(const std::string& text) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    CAPTURE(line);
    CHECK(line.size() <= 80);
  }
}

}  // namespace

TEST_CASE("the ladder is the baseline, then each switch added to those before") {
  std::vector<std::string> names;
  for (const Rung& rung : ladder()) names.push_back(rung.name);
  CHECK(names == std::vector<std::string>{"baseline", "prealloc-signal", "prealloc-kernarg",
                                          "avoid-host-sync", "fence", "pinned-host"});
  CHECK(ladder()[0].switches == Switches{});
  CHECK(ladder()[3].switches == Switches{true, true, true, false, false});
  CHECK(ladder()[5].switches == Switches{true, true, true, true, true});
  CHECK(name_of(Switches{}) == "baseline");
  CHECK(name_of(Switches{true, false, false, true, false}) == "prealloc-signal+fence");
}

TEST_CASE("2^n keys take n (n + 1) / 2 passes over half as many work-items") {
  const Network network(32768);
  CHECK(network.passes().size() == 120);
  CHECK(network.work_items() == 16384);
  CHECK(network.workgroup() == 256);
  CHECK(network.passes().front().stage == 0);
  CHECK(network.passes().back().stage == 14);
  CHECK(network.passes().back().pass == 14);
  CHECK(Network(1u << 24).passes().size() == 300);
}

TEST_CASE("small inputs have workgroups of half their keys") {
  CHECK(Network(2).workgroup() == 1);
  CHECK(Network(2).passes().size() == 1);
  CHECK(Network(64).workgroup() == 32);
  CHECK(Network(512).workgroup() == 256);
  CHECK(Network(1024).workgroup() == 256);
}

TEST_CASE(
    "lengths other than powers of two from 2 to 2^24 are refused, and the error names the valid "
    "ones") {
  for (const int64_t length :
       {int64_t{0}, int64_t{1}, int64_t{3}, int64_t{-4}, int64_t{1000}, (int64_t{1} << 24) + 1,
        int64_t{1} << 25, int64_t{1} << 32, INT64_MIN}) {
    CAPTURE(length);
    try {
      const Network network(length);
      FAIL("accepted");
    } catch (const std::invalid_argument& error) {
      CHECK(contains(error.what(), std::to_string(length)));
      CHECK(contains(error.what(), "power of two from 2 to 16777216"));
    }
  }
}

TEST_CASE("rungs alternate, iteration by iteration") {
  std::vector<Switches> order;
  measure(ladder(), 2, [&](const Switches& switches) {
    order.push_back(switches);
    return Iteration{.us = 1, .counts = {}};
  });
  REQUIRE(order.size() == 12);
  for (size_t i = 0; i < order.size(); ++i) CHECK(order[i] == ladder()[i % 6].switches);
}

TEST_CASE("a measurement that is stopped leaves every rung with equally many iterations") {
  const auto sort = [](const Switches&) { return Iteration{.us = 1, .counts = {}}; };
  const auto rungs = measure(ladder(), 9, sort,
                             [](const std::string&, uint64_t done, uint64_t) { return done < 8; });
  for (const RungResult& rung : rungs) CHECK(rung.iteration_us.size() == 2);
}

TEST_CASE("delta is relative to the previous rung, speed-up to the first, both of medians") {
  const Report report = article_report();
  CHECK(report.rungs[0].delta_us == 0);
  CHECK(report.rungs[0].speedup == 1);
  CHECK(report.rungs[3].delta_us == -204);
  CHECK(report.rungs[4].delta_us == -444);
  CHECK(report.rungs[5].delta_us == -84);
  CHECK(report.rungs[5].speedup == Approx(1943.0 / 1137.0));
  CHECK(contains(table(report), "+ fence                    1221.0       -444.0     1.59x\n"));

  const auto median_of = [](const std::vector<double>& us) {
    size_t call = 0;
    return measure({{"baseline", {}}}, static_cast<uint32_t>(us.size()),
                   [&](const Switches&) { return Iteration{.us = us[call++], .counts = {}}; })[0]
        .us_per_iteration;
  };
  CHECK(median_of({9, 1, 2, 100, 3}) == 3);
  CHECK(median_of({9, 1, 2, 3}) == 2.5);
}

TEST_CASE("a wrong result counts against its rung, and the table shows it prominently") {
  Report report = article_report();
  CHECK(is_right(report));
  CHECK(contains(table(report), "Verified: every result equals std::sort of its input.\n"));
  report.rungs = measure(ladder(), 4, [](const Switches& switches) {
    return Iteration{.us = 1, .counts = {}, .correct = !switches.fence || switches.pinned_host};
  });
  CHECK_FALSE(is_right(report));
  CHECK(contains(table(report), "WRONG RESULTS: fence (4 of 4 iterations)."));
}

TEST_CASE("the table fits 80 columns, also when times and counts are large") {
  Report report = article_report();
  check_width(table(report));
  for (RungResult& result : report.rungs) {
    result.us_per_iteration *= 10000;
    result.delta_us *= 10000;
    result.counts.bytes_staged = 2u << 26;
    result.counts.copies_staged = 600;
  }
  check_width(table(report));
  const Switches all{true, true, true, true, true};
  report.rungs = measure({{name_of(all), all}}, 1,
                         [](const Switches&) { return Iteration{.us = 1, .counts = {}}; });
  check_width(table(report));
  CHECK(contains(table(report), "\nSwitches: " + name_of(all) + "\n"));
}

TEST_CASE("the table labels the times of a virtual GPU, and only those") {
  Report report = article_report();
  CHECK(contains(table(report), "virtual GPU time"));
  report.is_virtual = false;
  CHECK_FALSE(contains(table(report), "virtual"));
}
