#include "tools/fence_scope/report/report_table.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <sstream>

#include <unistd.h>

#include "test/support/catch.hpp"
#include "test/support/environment.hpp"
#include "test/support/text.hpp"
#include "test/tools/fence_scope/report/example_reports.hpp"
#include "tools/fence_scope/report/report_words.hpp"
#include "tools/support/statistics.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;
using test::contains;
using test::count;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string unwrapped(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

size_t widest(const std::string& text) {
  size_t width = 0;
  for (const std::string& line : lines_of(text)) width = std::max(width, line.size());
  return width;
}

}  // namespace

TEST_CASE(
    "table of a report: the first line begins the conclusion, and no line exceeds the terminal's "
    "width") {
  for (const Report& report :
       {examples::scopes_report(), examples::sweep_report(), examples::ladder_report()}) {
    for (const unsigned columns : {80u, 100u, 160u}) {
      const std::string text = table(report, columns);
      CHECK(report.conclusion.starts_with(lines_of(text)[0]));
      CHECK(widest(text) <= columns);
      CHECK(widest(text) > columns * 3 / 5);
    }
    // Below 80 columns the table becomes no narrower.
    CHECK(table(report, 20) == table(report, 80));
  }
}

TEST_CASE(
    "table of a report: each cell has one line at any width, and figures without room are named") {
  const Report report = examples::scopes_report();
  for (const unsigned columns : {80u, 100u, 120u, 160u}) {
    const std::string text = table(report, columns);
    CAPTURE(columns, text);
    CHECK(count(text, "\n---") == 1);
    size_t unordered = 0;
    for (const Cell& cell : report.cells) unordered += cell.judgement.verdict == Verdict::unordered;
    CHECK(count(text, "unordered 0>1") == unordered);
    // The figures that decide have room in any case.
    const std::string header = text.substr(0, text.find("\n---"));
    CHECK(contains(header, "mi210:"));
    CHECK(contains(header, " gated"));
    const std::string words = unwrapped(text);
    for (const char* other : {"by round", "ungated", "dropped", "written"})
      CHECK(
          (contains(header, other) || contains(words.substr(words.find("Without room: ")), other)));
    for (const char* alike : {"5 packets", "1 interrupt"}) CHECK(contains(text, alike));
  }
  CHECK(contains(table(report, 160), "2560/1536"));
  CHECK_FALSE(contains(table(report, 160), "Without room"));
}

TEST_CASE("table of a report: times of a virtual GPU and of a model are labelled in place") {
  const std::string scopes = table(examples::scopes_report());
  CHECK(contains(scopes, "GPU us,"));
  CHECK(contains(scopes, "times of a virtual GPU, not of hardware"));
  CHECK(contains(scopes, "mi210:"));
  CHECK(contains(scopes, "predicted"));
  CHECK(!contains(scopes, "restated"));

  const std::string ladder = table(examples::ladder_report(), 160);
  CHECK(contains(ladder, "restated,"));
  CHECK(contains(ladder, "not reproduced"));
  CHECK(contains(ladder, "predicted"));

  const std::string sweep = table(examples::sweep_report());
  CHECK(!contains(sweep, "virtual"));
  CHECK(contains(sweep, "gated us"));
  CHECK(!contains(sweep, "model"));
  CHECK(contains(sweep, "device us"));
  CHECK(contains(sweep, "Timing::batch"));
}

TEST_CASE(
    "table of a report: a ratio that the medians beside it contradict is called one by round") {
  Report report = examples::ladder_report();
  report.cells.resize(2);
  Cell &baseline = report.cells[0], &cell = report.cells[1];
  for (Cell& each : report.cells) each.model.reset();
  // The machine's speed changes between rounds. In most of them the cell takes 0.85 of the
  // baseline's time, although its median is larger.
  baseline.gated = examples::times_of({1000, 2000, 3000, 4008, 5007, 6000, 7000});
  cell.gated = examples::times_of({2000, 3000, 6000, 3407, 4256, 5100, 5950});
  std::vector<double> ratios;
  for (size_t i = 0; i < 7; ++i)
    ratios.push_back(cell.gated.samples_us[i] / baseline.gated.samples_us[i]);
  cell.relative = support::median(ratios);
  const std::string text = table(report, 100);
  CHECK(contains(text, "4008"));
  CHECK(contains(text, "4256"));
  CHECK(contains(text, "by round"));
  CHECK(contains(text, "0.85x"));
  CHECK(contains(unwrapped(text), "it is not the quotient of the two medians"));
}

TEST_CASE("table of a report: a small one, character by character") {
  Report report = examples::ladder_report();
  report.cells.resize(3);
  report.cells[1].model.reset();
  report.cells[2].model.reset();
  report.cells[2].judgement = {
      .verdict = Verdict::stale, .writer = 3, .reader = 4, .reason = "because"};
  report.cells[2].gated = examples::times_of({100, 101, 99, 100, 100, 110, 90});
  report.cells[2].gated.noisy = true;
  report.cells[2].relative = std::numeric_limits<double>::quiet_NaN();
  for (Cell& cell : report.cells) cell.counts = {};
  report.warnings = {"the machine is busy"};
  CHECK(
      table(report, 100) ==
      R"(Everything together takes 0.59x the baseline's time (times of a virtual GPU, not of hardware).

AMD Radeon R9 Fury (gfx803); times of a virtual GPU, not of hardware; Timing::none; seed 1
warning: the machine is busy

ladder bitonic_sort

                                        model
                                        fiji:
                                    restated,       virtual              virtual
                               not reproduced       GPU us,     ratio    GPU us,
                    verdict                us         gated  by round    ungated
--------------------------------------------------------------------------------
= baseline          correct       1943  1.00x     6029 +-1%     1.00x  6418 +-1%
  prealloc-signal   correct                       5915 +-1%     0.98x  6296 +-1%
  prealloc-kernarg  stale 3>4                  100.0 +-10%?         -  6174 +-1%

Equal for all: 0 packets, 0 doorbells, 0 signal updates, 0 interrupts, 0 barrier bits, 0/0 agent
  acquires/releases, 0/0 system acquires/releases.

= baseline. Times are medians of one iteration and the half width of their interval. A ratio by
round is the median of the quotients of a cell's and the baseline's times in the same round, which a
drift of the machine's speed does not affect; it is not the quotient of the two medians. ? too
noisy: stopped before the interval was narrow enough. Model: an estimate from the profile of a
device, not a measurement; then, times the baseline's. 2>3: step 2 writes data that step 3 touches,
in either order.

correct   promised by the rules, and right in every run
stale     ordered, but a fence between writer and reader is missing or too narrow

Why not:
  1 cell: because
)");
}

TEST_CASE(
    "table of a report: each reason why cells are not correct appears once, most frequent first") {
  const Report report = examples::scopes_report();
  const std::string text = table(report, 160);
  CHECK(contains(text, "18 cells: dispatch 1 reads what dispatch 0 wrote, and has no barrier bit"));
  CHECK(count(text, "dispatch 1 reads what dispatch 0 wrote") == 1);
  CHECK(contains(
      text, "unknown   not promised by the rules, but no run was wrong: only hardware could tell"));
}

TEST_CASE("table of a report: the description follows the workload's name") {
  Report report = examples::scopes_report();
  CHECK(contains(table(report, 160), "\nscopes chain\n"));
  report.description = "each kernel reads all output of the previous one";
  CHECK(contains(table(report, 160),
                 "\nscopes chain: each kernel reads all output of the previous one\n"));
}

TEST_CASE("table of a report: a report without cells has only the conclusion") {
  Report report;
  report.conclusion = "Nothing was asked for.";
  report.device = "D";
  CHECK(table(report) ==
        "Nothing was asked for.\n\nD; times of a virtual GPU, not of hardware; Timing::none; seed "
        "1\n");
}

TEST_CASE(
    "table of a report: the width is $COLUMNS if standard output is no terminal, within bounds") {
  if (isatty(1) == 0) {
    test::Environment environment{{"COLUMNS", "160"}};
    CHECK(terminal_columns() == 160);
    environment.set("COLUMNS", "20");
    CHECK(terminal_columns() == 80);
    environment.set("COLUMNS", "x");
    CHECK(terminal_columns() == 80);
    environment.unset("COLUMNS");
    CHECK(terminal_columns() == 80);
  }
}
