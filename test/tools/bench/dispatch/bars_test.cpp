// How bars are judged.
#include "tools/bench/dispatch/bars.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo::bench;

namespace {

using uptempo::test::contains;

constexpr Counts kNone{0, 0, 0, 1};

Series steady(const std::string& name, uint32_t batch, double ns, const Counts& counts = kNone) {
  return {name, batch, Phase::submit, std::vector<double>(20, ns), counts};
}

// Every bar is met by these.
Results good() {
  Results results;
  for (const uint32_t batch : {8u, 120u, 1024u, 8192u}) {
    results.all.push_back(steady("floor-packets", batch, 4));
    results.all.push_back(steady("floor-packets-kernargs", batch, 5));
    results.all.push_back(steady("hsa-careful", batch, 6));
    results.all.push_back(steady("uptempo-single", batch, 20));
    results.all.push_back(steady("uptempo-stream", batch, 20));
    results.all.push_back(steady("uptempo-stream-packed", batch, 21));
    results.all.push_back(steady("uptempo-c-stream", batch, 25));
    results.all.push_back(steady("uptempo-c-packed", batch, 17));
    results.all.push_back(steady("uptempo-c-params", batch, 18));
    results.all.push_back(steady("uptempo-launcher", batch, 19));
    results.all.push_back(steady("uptempo-dispatch", batch, 12));
    results.all.push_back(steady("uptempo-dispatch-packed", batch, 13));
    results.all.push_back(steady("uptempo-dispatch-params", batch, 14));
    results.all.push_back(steady("uptempo-prepared", batch, 10));
    results.all.push_back(steady("uptempo-batch", batch, 7));
    results.all.push_back(steady("uptempo-planned", batch, 29));
    results.all.push_back(steady("uptempo-planned-slices", batch, 28));
    // Below a floor that does less work.
    results.all.push_back(steady("uptempo-replay", batch, 4.5));
    results.all.push_back(steady("uptempo-replay-patched", batch, 4.8));
    results.all.push_back(steady("uptempo-hip-graph", batch, 4.6));
    results.all.push_back(steady("hip-launch", batch, 800, {2, 0, 4, 1}));
    results.all.push_back(steady("hip-graph", batch, 900, {2, 0, 4, 1}));
  }
  return results;
}

Series& series(Results& results, const std::string& name, uint32_t batch) {
  return *std::ranges::find_if(results.all,
                               [&](const Series& s) { return s.name == name && s.batch == batch; });
}

Judgement of(const Results& results, const std::string& bar) {
  for (const Judgement& judgement : judge(results))
    if (judgement.bar == bar) return judgement;
  throw std::runtime_error("no bar '" + bar + "'");
}

std::string error_of(const Results& results) {
  return uptempo::test::error_of<std::runtime_error>([&] { require_met(judge(results)); });
}

constexpr const char* kBatchBar = "uptempo-batch of 120: at most 1.2 times hsa-careful of 120";

}  // namespace

TEST_CASE("bars that are met are no error") {
  CHECK(error_of(good()) == "no error");
  CHECK(of(good(), kBatchBar).found == "1.17 (1.17 .. 1.17)");
}

TEST_CASE("a ratio meets a bar with its whole interval") {
  Results results = good();
  auto& ns = series(results, "uptempo-batch", 120).ns_per_dispatch;
  std::fill_n(ns.begin(), 7, 7.5);  // more than the interval leaves out at either end
  CHECK(of(results, kBatchBar).verdict == Verdict::missed);
  CHECK(of(results, kBatchBar).found == "1.17 (1.17 .. 1.25)");
  CHECK(contains(error_of(results), std::string("missed: '") + kBatchBar));
}

TEST_CASE("for a bar on how many times cheaper a row is, the lower end counts") {
  Results results = good();
  auto& ns = series(results, "hip-launch", 120).ns_per_dispatch;
  std::fill_n(ns.begin(), 7, 7 * 29.9);
  CHECK(of(results, "hip-launch of 120: at least 30 times uptempo-batch of 120").verdict ==
        Verdict::missed);
}

TEST_CASE("an imported graph is compared with HIP's own by a bar for each major version of HIP") {
  Results results = good();
  series(results, "hip-graph", 1024).ns_per_dispatch.assign(20, 4.6 * 12);
  const auto verdict = [&](int hip_major, const std::string& bar) {
    const std::vector<Judgement> all = judge(results, hip_major);
    const auto found = std::ranges::find(all, bar, &Judgement::bar);
    REQUIRE(found != all.end());
    return found->verdict;
  };
  CHECK(verdict(5, "hip-graph of 1024: at least 25 times uptempo-hip-graph of 1024") ==
        Verdict::missed);
  CHECK(verdict(6, "hip-graph of 1024: at least 10 times uptempo-hip-graph of 1024") ==
        Verdict::met);
}

TEST_CASE("a bar may compare two lengths of batch of one row") {
  Results results = good();
  series(results, "uptempo-replay", 8192).ns_per_dispatch.assign(20, 4.5 * 1.3);
  CHECK(of(results, "uptempo-replay of 8192: at most 1.25 times uptempo-replay of 120").verdict ==
        Verdict::missed);
}

TEST_CASE("a difference meets a bar with its whole interval") {
  Results results = good();
  const std::string bar = "uptempo-planned of 120: at most 20 ns more than uptempo-prepared";
  CHECK(of(results, bar).verdict == Verdict::met);
  auto& ns = series(results, "uptempo-planned", 120).ns_per_dispatch;
  std::fill_n(ns.begin(), 7, 30.5);
  CHECK(of(results, bar).verdict == Verdict::missed);
  CHECK(of(results, bar).found == "19.00 (19.00 .. 20.50) ns");
}

TEST_CASE("a single allocation in any batch misses the bar") {
  Results results = good();
  series(results, "uptempo-batch", 1024).counts.allocations = 0.01;
  const Judgement judgement = of(results, "uptempo-batch: no heap allocations");
  CHECK(judgement.verdict == Verdict::missed);
  CHECK(judgement.found == "0.01 per batch of 1024, phase submit");
}

TEST_CASE("a floor is missed when another row is certainly cheaper, not when it is so by chance") {
  Results results = good();
  auto& ns = series(results, "hsa-careful", 8192).ns_per_dispatch;
  ns.assign(20, 3.9);
  CHECK(of(results, "floor-packets: no row is cheaper").verdict == Verdict::missed);
  CHECK(of(results, "floor-packets: no row is cheaper").found ==
        "hsa-careful of 8192: 0.97 (0.97 .. 0.97) times");
  CHECK(of(results, "floor-packets-kernargs: no row is cheaper").verdict == Verdict::missed);
  std::fill_n(ns.begin(), 7, 4.1);
  CHECK(of(results, "floor-packets: no row is cheaper").verdict == Verdict::met);
}

TEST_CASE("a bar that cannot be judged is an error that names the bar and the missing figure") {
  Results results = good();
  std::erase_if(results.all, [](const Series& s) { return s.name == "uptempo-replay"; });
  const std::string error = error_of(results);
  CHECK(contains(
      error,
      "not judged: 'uptempo-replay of 120: at most 1.15 times floor-packets of 120', found no "
      "figure of uptempo-replay for batches of 120, phase submit"));
  CHECK(contains(error, "not judged: 'uptempo-replay: no system calls'"));
  CHECK_FALSE(contains(error, kBatchBar));

  results = good();
  series(results, "uptempo-single", 1024).counts.system_calls.reset();
  CHECK(of(results, "uptempo-single: no system calls").verdict == Verdict::not_judged);
  CHECK(of(results, "uptempo-single: no system calls").found == "system calls were not counted");

  CHECK(contains(error_of(Results{}), "not judged: 'floor-packets: no row is cheaper'"));
  for (const Judgement& judgement : judge(Results{}))
    CHECK(judgement.verdict == Verdict::not_judged);
}

TEST_CASE("the report has every bar with its verdict") {
  const auto judgements = judge(good());
  CHECK(contains(table(judgements), kBatchBar));
  const nlohmann::ordered_json out = json(judgements);
  REQUIRE(out.size() == judgements.size());
  CHECK(out[0] == nlohmann::ordered_json{
                      {"bar", kBatchBar}, {"found", "1.17 (1.17 .. 1.17)"}, {"verdict", "met"}});
}
