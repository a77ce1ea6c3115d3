#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "tools/hardware/cost_probe.hpp"

using namespace uptempo::hardware;
using uptempo::test::contains;

namespace {

// Every row costs 100 ns in each of ten rounds.
CostTimes all_equal() {
  CostTimes ns;
  ns.fill(std::vector<double>(10, 100.0));
  return ns;
}

}  // namespace

TEST_CASE("equal costs are as the engine assumes, and are given row by row") {
  CostTimes ns = all_equal();
  ns[6].assign(10, 350.0);
  const Answer answer = answer_of_costs(ns);
  CHECK(answer.verdict == Verdict::as_assumed);
  CHECK(contains(answer.text, "alone 100, barrier bit 100, "));
  CHECK(contains(answer.text, "signal +250"));
  CHECK(answer.measured.size() == kCostRows);
  CHECK(answer.measured["signal"]["ns_per_packet"] == 350.0);
}

TEST_CASE("a narrower fence that costs clearly more than the wider one differs") {
  for (const size_t narrower : {size_t{2}, size_t{4}}) {
    CostTimes ns = all_equal();
    ns.at(narrower).assign(10, 130.0);
    const Answer answer = answer_of_costs(ns);
    CHECK(answer.verdict == Verdict::differs);
    CHECK(contains(answer.text, narrower == 2 ? "acquire agent costs more than acquire system"
                                              : "release agent costs more than release system"));
  }
}

TEST_CASE("costs that scatter more than they differ do not differ") {
  CostTimes ns = all_equal();
  ns[2] = {300, 90, 80, 100, 310, 95, 320, 100, 85, 305};
  CHECK(answer_of_costs(ns).verdict == Verdict::as_assumed);
}
