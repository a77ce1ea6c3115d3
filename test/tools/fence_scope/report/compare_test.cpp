#include "tools/fence_scope/report/compare.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "test/support/catch.hpp"
#include "test/tools/fence_scope/report/example_reports.hpp"
#include "tools/support/program.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;
using uptempo::test::Approx;

namespace {

std::string refusal(const Report& a, const Report& b, Quantity quantity = Quantity::gated) {
  try {
    compare(a, "a.json", b, "b.json", quantity);
  } catch (const support::UsageError& error) {
    return error.what();
  }
  return "accepted";
}

void scale(Cell& cell, double by) {
  std::vector<double> samples = cell.gated.samples_us;
  for (double& sample : samples) sample *= by;
  cell.gated = examples::times_of(std::move(samples));
}

}  // namespace

TEST_CASE(
    "comparison: times of different kinds, modes of Timing or schemas are refused, and the error "
    "names both") {
  const Report hardware = examples::sweep_report();
  Report other = hardware;
  other.time_kind = TimeKind::virtual_gpu;
  CHECK(refusal(hardware, other) ==
        "times of hardware and of a virtual GPU cannot be compared: a.json has times of hardware, "
        "b.json has "
        "times of a "
        "virtual GPU, not of hardware");
  other = hardware;
  other.timing = TimingMode::each;
  CHECK(refusal(hardware, other) ==
        "times taken in different modes of Timing cannot be compared: a.json has Timing::batch, "
        "b.json has "
        "Timing::each");
  other = hardware;
  other.schema = 2;
  CHECK(refusal(hardware, other) ==
        "reports of different schemas cannot be compared: a.json has 1, b.json has 2");
  CHECK(refusal(hardware, examples::scopes_report())
            .starts_with("times of hardware and of a virtual GPU"));
}

TEST_CASE("comparison: a model is compared only with the same model, never with measurements") {
  const Report fiji = examples::ladder_report();
  Report other = fiji;
  for (Cell& cell : other.cells) cell.model->profile = "mi300x";
  CHECK(refusal(fiji, other, Quantity::model) ==
        "models of different devices cannot be compared: a.json has model fiji, b.json has model "
        "mi300x");
  for (Cell& cell : other.cells) cell.model.reset();
  CHECK(refusal(fiji, other, Quantity::model) ==
        "reports without times of the same cells cannot be compared: a.json has some model times, "
        "b.json has "
        "no model "
        "times");
  other = fiji;
  other.time_kind = TimeKind::hardware;  // a model does not depend on it
  other.cells[2].model->us *= 2;
  const ReportComparison models = compare(fiji, "a", other, "b", Quantity::model);
  CHECK(models.cells[2].ratio == 2);
  CHECK(!models.cells[2].test);
  CHECK(!models.worse());
  CHECK(table(models).find("modelled times, not measured") != std::string::npos);
}

TEST_CASE("comparison: reports without a common cell or a common kind of time are refused") {
  Report a = examples::scopes_report(), b = examples::ladder_report();
  CHECK(refusal(a, b) ==
        "reports without a cell in common cannot be compared: a.json has 54 of 'scopes', b.json "
        "has 6 of "
        "'ladder'");
  CHECK(refusal(a, a, Quantity::device) ==
        "reports without times of the same cells cannot be compared: a.json has no device times, "
        "b.json has no "
        "device "
        "times");
}

TEST_CASE("comparison: a report compared with itself shows no difference") {
  const Report report = examples::sweep_report();
  for (const Quantity quantity : {Quantity::gated, Quantity::ungated, Quantity::device}) {
    const ReportComparison comparison = compare(report, "a.json", report, "b.json", quantity);
    REQUIRE(comparison.cells.size() == report.cells.size());
    for (const ComparedCell& cell : comparison.cells) {
      CHECK(cell.ratio == 1);
      CHECK(cell.low <= 1);
      CHECK(cell.high >= 1);
      CHECK(cell.coverage >= 0.95);
      CHECK(!cell.differs());
    }
    CHECK(comparison.differences.empty());
    CHECK(!comparison.worse());
  }
}

TEST_CASE("comparison: cells that became slower, faster or wrong are named, and no others") {
  const Report before = examples::sweep_report();
  Report after = before;
  scale(after.cells[3], 1.5);
  scale(after.cells[7], 0.5);
  after.cells[9].judgement.verdict = Verdict::stale;
  after.versions["rocr"] = "libhsa-runtime64.so.2";
  after.environment["HSA_X"] = "1";
  const ReportComparison comparison = compare(before, "old.json", after, "new.json");
  for (size_t i = 0; i < comparison.cells.size(); ++i)
    CHECK((comparison.cells[i].differs() == (i == 3 || i == 7)));
  CHECK(comparison.cells[3].ratio == Approx(1.5));
  CHECK(comparison.cells[3].low < 1.5);
  CHECK(comparison.cells[3].high > 1.5);
  CHECK(comparison.cells[3].low > 1.4);
  CHECK(comparison.worse());
  CHECK(comparison.conclusion() ==
        "Of 12 cells, 1 are no longer correct, 1 are slower, 1 are faster, and 10 do not differ.");
  CHECK(comparison.differences ==
        std::vector<std::string>{"rocr: none in old.json, libhsa-runtime64.so.2 in new.json",
                                 "HSA_X: none in old.json, 1 in new.json"});
  const nlohmann::ordered_json out = json(comparison);
  CHECK(out["cells"][3]["result"] == "slower");
  CHECK(out["cells"][7]["result"] == "faster");
  CHECK(out["cells"][9]["verdict_b"] == "stale");
  CHECK(out["cells"][3]["p"].get<double>() < out["cells"][3]["p_adjusted"].get<double>());
  CHECK(out["worse"] == true);

  after = before;
  scale(after.cells[7], 0.5);
  CHECK(!compare(before, "a", after, "b").worse());
}

TEST_CASE("comparison: chance differences of many cells are hardly ever reported") {
  std::mt19937_64 random(9);
  std::normal_distribution<double> noise(100, 5);
  const auto measured = [&] {
    Report report = examples::scopes_report();
    for (Cell& cell : report.cells) {
      std::vector<double> samples(12);
      std::ranges::generate(samples, [&] { return noise(random); });
      cell.gated = examples::times_of(std::move(samples));
    }
    return report;
  };
  int wrong = 0;
  for (int round = 0; round < 100; ++round) {
    const Report a = measured(), b = measured();
    const ReportComparison comparison = compare(a, "a", b, "b");
    wrong += std::ranges::any_of(comparison.cells, &ComparedCell::differs);
  }
  // At most 5 are expected; without the correction 94 would be. More than 14 occur with a
  // probability below 1 in 5000.
  CHECK(wrong <= 14);
}

TEST_CASE(
    "comparison: cells of one report only are listed, and equal ones are paired in their order") {
  Report a = examples::ladder_report(), b = a;
  a.cells.erase(a.cells.begin());
  b.cells.push_back(b.cells[5]);
  scale(b.cells[6], 2);
  const ReportComparison comparison = compare(a, "a", b, "b");
  CHECK(comparison.cells.size() == 5);
  CHECK(comparison.only_in_a.empty());
  REQUIRE(comparison.only_in_b.size() == 2);
  CHECK(comparison.only_in_b[0]->label == "baseline");
  CHECK(!comparison.cells[4].differs());
}

TEST_CASE(
    "comparison: the table begins with the conclusion, keeps its width and has verdicts beside "
    "times") {
  const Report before = examples::scopes_report();
  Report after = before;
  scale(after.cells[20], 3);
  after.cells[20].judgement.verdict = Verdict::correct;
  after.cells[21].judgement.verdict = Verdict::unordered;
  const ReportComparison comparison = compare(before, "a.json", after, "b.json");
  for (const unsigned columns : {80u, 120u, 160u}) {
    const std::string text = table(comparison, columns);
    CHECK(comparison.conclusion().starts_with(text.substr(0, text.find('\n'))));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) CHECK(line.size() <= columns);
    CHECK(text.find("stale, now correct") != std::string::npos);
    CHECK(text.find("virtual GPU, not of hardware") != std::string::npos);
    CHECK(text.find("slower") != std::string::npos);
    CHECK(text.find("Holm") != std::string::npos);
  }
  CHECK(table(comparison, 160).find("p,") != std::string::npos);
}
