#include "tools/fence_scope/report/report_json.hpp"

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "test/support/catch.hpp"
#include "test/tools/fence_scope/report/example_reports.hpp"
#include "tools/fence_scope/report/report_words.hpp"
#include "tools/support/program.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;
using nlohmann::ordered_json;

namespace {

std::string refusal(const std::string& text) {
  try {
    parse_report(text, "r.json");
  } catch (const support::UsageError& error) {
    return error.what();
  }
  return "accepted";
}

// The example with the value at a JSON pointer replaced, or removed if there is no `value`.
std::string refusal_of(const char* pointer, std::optional<ordered_json> value) {
  ordered_json report = json(examples::scopes_report());
  const ordered_json::json_pointer at(pointer);
  REQUIRE(report.contains(at));
  if (value)
    report[at] = *value;
  else
    report[at.parent_pointer()].erase(at.back());
  return refusal(report.dump());
}

}  // namespace

TEST_CASE(
    "report as JSON: everything that a report holds is read back unchanged, to the last bit") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    const Report report = examples::random_report(random);
    REQUIRE(parse_report(json_text(report), "r.json") == report);
  }
  for (const Report& report :
       {examples::scopes_report(), examples::sweep_report(), examples::ladder_report(), Report{}})
    CHECK(parse_report(json_text(report), "r.json") == report);
}

TEST_CASE("report as JSON: an unknown number is null, and is read back as such") {
  Report report = examples::ladder_report();
  report.cells[1].relative = std::numeric_limits<double>::quiet_NaN();
  report.cells[1].model->us = std::numeric_limits<double>::infinity();
  const std::string text = json_text(report);
  CHECK(ordered_json::parse(text)["cells"][1]["relative"].is_null());
  const Report back = parse_report(text, "r.json");
  CHECK(std::isnan(back.cells[1].relative));
  CHECK(std::isnan(back.cells[1].model->us));
  CHECK(json_text(back) == text);
}

TEST_CASE("report as JSON: a variable whose bytes are not UTF-8 does not lose the report") {
  Report report = examples::ladder_report();
  report.environment["HSA_X"] = "a\xff";
  CHECK(parse_report(json_text(report), "r.json").environment["HSA_X"] == "a\xef\xbf\xbd");
}

TEST_CASE("report as JSON: names, units and nulls are as documented") {
  const ordered_json report = ordered_json::parse(json_text(examples::scopes_report()));
  CHECK(report["format"] == "fence_scope report");
  CHECK(report["schema"] == kReportSchema);
  CHECK(report["units"]["time"] == "us");
  CHECK(report["time_kind"] == "virtual_gpu");
  CHECK(report["timing"] == "none");
  CHECK(report["environment"]["HSA_ENABLE_INTERRUPT"] == "0");
  REQUIRE(report["cells"].size() == 54);
  // interior, barrier, acquire none, release agent
  const ordered_json& cell = report["cells"][18 + 1];
  CHECK(cell["position"] == "interior");
  CHECK(cell["barrier"] == true);
  CHECK(cell["acquire"] == "none");
  CHECK(cell["release"] == "agent");
  CHECK(cell["judgement"]["verdict"] == "stale");
  CHECK(cell["judgement"]["writer"] == 1);
  CHECK(report["cells"][0]["judgement"]["writer"].is_null());  // the host
  CHECK(cell["device"].is_null());
  CHECK(cell["gated"]["samples_us"].size() == 9);
  CHECK(cell["counts"]["system_acquires"] == 3);
  // Steps 0, 1-2, 3-4.
  REQUIRE(cell["headers"].size() == 3);
  CHECK(cell["headers"][1] ==
        ordered_json{{"count", 2}, {"barrier", true}, {"acquire", "none"}, {"release", "agent"}});
  const ordered_json hardware = ordered_json::parse(json_text(examples::sweep_report()));
  CHECK(hardware["time_kind"] == "hardware");
  CHECK(hardware["cells"][0]["model"].is_null());
  CHECK(hardware["cells"][0]["counts"]["l1_lines_invalidated"].is_null());
}

TEST_CASE("report as JSON: an error names the file, the field and what was found") {
  CHECK(refusal_of("/cells/3/gated/median_us", "fast") ==
        "r.json: cells[3].gated.median_us: \"fast\"; take a number");
  CHECK(refusal_of("/cells/3/gated/median_us", std::nullopt) ==
        "r.json: cells[3].gated: the field 'median_us' is missing");
  CHECK(refusal_of("/cells/3/gated/median_us", 1e9)
            .starts_with("r.json: cells[3].gated: an impossible time"));
  CHECK(refusal_of("/cells/5/acquire", "workgroup") ==
        "r.json: cells[5].acquire: \"workgroup\"; take a name that this version knows");
  CHECK(refusal_of("/cells/5/barrier", 1) == "r.json: cells[5].barrier: 1; take true or false");
  CHECK(refusal_of("/cells/0/kernels", -1) ==
        "r.json: cells[0].kernels: -1; take a whole number from 0 to 4294967295");
  CHECK(refusal_of("/cells/0/kernels", 4294967296) ==
        "r.json: cells[0].kernels: 4294967296; take a whole number from 0 to 4294967295");
  CHECK(refusal_of("/cells/0/kernels", 1.5) ==
        "r.json: cells[0].kernels: 1.5; take a whole number from 0 to 4294967295");
  CHECK(refusal_of("/cells/7", "x") == "r.json: cells[7]: \"x\"; take an object");
  const std::optional<ordered_json> object(std::in_place, ordered_json::object());
  CHECK(refusal_of("/cells", object) == "r.json: cells: {}; take a list");
  CHECK(refusal_of("/steps/1", nullptr) == "r.json: steps[1]: null; take a string");
  CHECK(refusal_of("/versions/uptempo", 1) == "r.json: versions.uptempo: 1; take a string");
  CHECK(refusal_of("/timing", "both") ==
        "r.json: timing: \"both\"; take a name that this version knows");
  CHECK(refusal_of("/cells/0/headers/0/count", 4000000000u) ==
        "r.json: cells[0].headers: more than 1000000 headers");
}

TEST_CASE(
    "report as JSON: a different schema is refused with both versions, a foreign file with what it "
    "lacks") {
  CHECK(refusal_of("/schema", kReportSchema + 1) ==
        "r.json: its schema is 2, but this version reads 1");
  CHECK(refusal("{}") ==
        "r.json: the file is not a report of fence_scope: \"format\": \"fence_scope report\" is "
        "missing");
  CHECK(refusal("[1]") == refusal("{}").substr(0, refusal("[1]").size()));
  CHECK(refusal("") == "r.json: the text is not JSON from byte 1 of 0 on; is the file truncated?");
  const std::string whole = json_text(examples::ladder_report());
  for (const size_t cut : {size_t{1}, whole.size() / 2, whole.size() - 3})
    CHECK(refusal(whole.substr(0, cut)).starts_with("r.json: the text is not JSON from byte"));
  CHECK_THROWS_WITH(read_report("/nonexistent/r.json"),
                    "cannot read '/nonexistent/r.json': No such file or directory");
}

TEST_CASE(
    "words of reports: times have three digits or more, sizes a unit, unknown values a dash") {
  CHECK(microseconds_text(1221.4) == "1221");
  CHECK(microseconds_text(999.6) == "1000");
  CHECK(microseconds_text(35.24) == "35.2");
  CHECK(microseconds_text(9.996) == "10.0");
  CHECK(microseconds_text(4.071) == "4.07");
  CHECK(microseconds_text(0.99951) == "1.00");
  CHECK(microseconds_text(0.0123) == "0.012");
  CHECK(microseconds_text(std::nan("")) == "-");
  CHECK(relative_text(2.1) == "2.10x");
  CHECK(relative_text(std::nan("")) == "-");
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1000) == "1000 B");
  CHECK(bytes_text(131072) == "128 KiB");
  CHECK(bytes_text(3ull << 30) == "3 GiB");
  CHECK(verdict_text({}) == "unknown");
  CHECK(verdict_text({.verdict = Verdict::unordered, .writer = 2, .reader = 3}) == "unordered 2>3");
  CHECK(verdict_text({.verdict = Verdict::stale, .reader = 3}) == "stale host>3");
  CHECK(flags_label({aql::Barrier::off, aql::FenceScope::agent, aql::FenceScope::none}) ==
        "no barrier, acquire agent, release none");
}
