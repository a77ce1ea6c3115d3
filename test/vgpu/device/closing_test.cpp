// The last line of a checked process.
#include "device/fences/report/closing.hpp"

#include <nlohmann/json.hpp>

#include "test/support/catch.hpp"

using namespace uptempo::vgpu::fences;
using nlohmann::json;

TEST_CASE("a clean run says what was checked") {
  Closing closing;
  closing.fences = true;
  closing.counts.dispatches = 12;
  closing.counts.copies = 1;
  closing.counts.bytes = 98304;
  closing.waits = true;
  CHECK(to_sentence(closing) == "checked 12 dispatches, 1 copy and 98304 bytes: no findings");
  closing.waits = false;
  CHECK(to_sentence(closing) ==
        "checked 12 dispatches, 1 copy and 98304 bytes: no findings; missing waits not looked for "
        "(fences,waits)");
  closing.fences = false;
  closing.counts.dispatches = 1;
  CHECK(to_sentence(closing) ==
        "checked 1 dispatch for floating-point atomics without effect: no findings");
}

TEST_CASE("findings are counted by class, with what was left out") {
  Closing closing;
  closing.fences = closing.waits = true;
  closing.counts.unordered = 1;
  closing.counts.stale = 2;
  closing.ignored_atomics = 4;
  CHECK(to_sentence(closing).ends_with(
      " and 0 bytes: 7 findings (1 unordered, 2 stale, 4 ignored-atomic)"));
  closing.counts.specification_only = 2;
  closing.counts.repeated = 1;
  closing.counts.suppressed = 3;
  closing.unused_suppressions = {"a.supp:2", "a.supp:7"};
  closing.report_file = "/tmp/report";
  CHECK(to_sentence(closing).ends_with(
      " in /tmp/report; 2 more that only the specification forbids (fences,hsa); 1 repetition "
      "not shown (fences,repeated); 3 suppressed; unused suppressions: a.supp:2, a.supp:7"));
}

TEST_CASE("the last line of a check for races says in how many dispatches") {
  Closing closing;
  closing.races = true;
  closing.counts.dispatches = 12;
  closing.race_counts.dispatches = 10;
  CHECK(to_sentence(closing) == "checked 10 dispatches for races: no findings");
  closing.race_counts.findings = 1;
  closing.race_counts.repeated = 2;
  closing.race_counts.incomplete = 1;
  closing.race_counts.suppressed = 4;
  CHECK(
      to_sentence(closing) ==
      "checked 10 dispatches for races: 1 finding (1 race); 2 races of later dispatches not shown "
      "(races,repeated); 1 dispatch not checked completely for races, for lack of memory; 4 "
      "suppressed");
  closing.fences = closing.waits = true;
  closing.race_counts = {.dispatches = 10, .findings = 2};
  closing.counts.stale = 1;
  CHECK(
      to_sentence(closing) ==
      "checked 12 dispatches, 0 copies and 0 bytes, and 10 of the dispatches for races: 3 findings "
      "(1 stale, 2 races)");
  const json summary = json::parse(to_json(closing, 1))["summary"];
  CHECK(summary["races"] == 2);
  CHECK(summary["dispatches_checked_for_races"] == 10);
  CHECK(summary["dispatches_incomplete_for_races"] == 0);
}

TEST_CASE("the summary is one line of JSON with every count") {
  Closing closing;
  closing.fences = true;
  closing.counts.unordered = 1;
  closing.counts.stale = 2;
  closing.counts.unreleased = 3;
  closing.counts.specification_only = 4;
  closing.counts.repeated = 5;
  closing.counts.suppressed = 6;
  closing.counts.dispatches = 7;
  closing.counts.copies = 8;
  closing.counts.bytes = 9;
  closing.ignored_atomics = 10;
  closing.unused_suppressions = {"a\"b:1"};
  const std::string line = to_json(closing, 11);
  CHECK(line.find('\n') == std::string::npos);
  CHECK(json::parse(line) == json{{"summary",
                                   {{"process", 11},
                                    {"dispatches", 7},
                                    {"copies", 8},
                                    {"bytes", 9},
                                    {"findings", 16},
                                    {"unordered", 1},
                                    {"stale", 2},
                                    {"unreleased", 3},
                                    {"ignored_atomics", 10},
                                    {"specification_only", 4},
                                    {"repeated", 5},
                                    {"suppressed", 6},
                                    {"unused_suppressions", {"a\"b:1"}}}}});
}

TEST_CASE("findings of memory are counted by their classes") {
  Closing closing;
  closing.memory = true;
  closing.counts.dispatches = 3;
  closing.counts.repeated = 2;
  closing.others = {{"out-of-bounds", 1}, {"use-after-free", 0}, {"leak", 2}};
  CHECK(to_sentence(closing) ==
        "checked 3 dispatches for errors of memory: 3 findings (1 out-of-bounds, 2 leak); "
        "2 repetitions not shown (memory,repeated)");
  const json summary = json::parse(to_json(closing, 7))["summary"];
  CHECK(summary["findings"] == 3);
  CHECK(summary["out-of-bounds"] == 1);
  CHECK(summary["use-after-free"] == 0);
  CHECK(summary["leak"] == 2);
}
