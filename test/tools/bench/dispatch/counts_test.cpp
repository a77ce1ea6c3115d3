// Evaluation of the output of a counting run.
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "tools/bench/dispatch/counts.hpp"
#include "tools/bench/dispatch/report.hpp"

using namespace uptempo::bench;
using nlohmann::ordered_json;

namespace {

ordered_json written() {
  return ordered_json::parse(R"({
    "format": "uptempo-dispatch-counts-1",
    "seen": {"allocations": true, "system_calls": true, "hsa_calls": true},
    "probe": [900, 999],
    "results": [{"name": "row", "batch": 8, "phase": "submit", "batches": 4, "allocations": 6, "system_calls": 0,
                 "hsa_calls": 16, "hdp_flushes": 4, "read_backs": 2, "windows": [[100, 200], [300, 400]]}]})");
}

std::string error_of(const std::string& text) {
  return uptempo::test::error_of<std::runtime_error>([&] { read_counts(text, {}, ""); });
}

}  // namespace

TEST_CASE(
    "counts are per batch, and a doorbell belongs to the row that was running when it was rung") {
  const CountReport report = read_counts(written().dump(), {99, 100, 150, 250, 400, 401, 950}, "");
  CHECK(report.missing.empty());
  const Counts* const counts = report.find("row", 8, Phase::submit);
  REQUIRE(counts != nullptr);
  CHECK(*counts == Counts{.allocations = 1.5,
                          .system_calls = 0,
                          .hsa_calls = 4,
                          .doorbells = 0.75,
                          .hdp_flushes = 1,
                          .read_backs = 0.5});
  CHECK(report.find("row", 8, Phase::complete) == nullptr);
  CHECK(report.find("row", 1, Phase::submit) == nullptr);
}

TEST_CASE("a counter that missed known events has counted nothing") {
  ordered_json in = written();
  in["seen"]["system_calls"] = false;
  const CountReport report = read_counts(in.dump(), {950}, "");
  CHECK(report.missing.size() == 1);
  CHECK(report.missing.at("system_calls").find("system call user dispatch") != std::string::npos);
  CHECK(report.find("row", 8, Phase::submit)->system_calls == std::nullopt);
  CHECK(report.find("row", 8, Phase::submit)->allocations == 1.5);
}

TEST_CASE("doorbells are counted only from a trace that has the last of them") {
  const CountReport stopped = read_counts(written().dump(), {150}, "");
  CHECK(stopped.find("row", 8, Phase::submit)->doorbells == std::nullopt);
  CHECK(stopped.missing.at("doorbells") == "the virtual GPU's trace is incomplete");
  const CountReport hardware = read_counts(written().dump(), {}, "no trace here");
  CHECK(hardware.find("row", 8, Phase::submit)->doorbells == std::nullopt);
  CHECK(hardware.missing.at("doorbells") == "no trace here");
}

TEST_CASE("output that the counting run did not write is refused") {
  CHECK(error_of("{") != "no error");
  CHECK(error_of("{}") != "no error");
  CHECK(error_of(written().dump().substr(0, written().dump().size() / 2)) != "no error");
  ordered_json newer = written();
  newer["format"] = "uptempo-dispatch-counts-2";
  CHECK(error_of(newer.dump()).find("uptempo-dispatch-counts-1") != std::string::npos);
}

TEST_CASE("uncountable values are printed as such, never as 0") {
  Report report{
      .device = "some GPU",
      .batches = {8},
      .results = {{{"row", 8, Phase::submit, {1, 2, 3}, {0, std::nullopt, 12.25, std::nullopt}}}},
      .not_counted = {{"doorbells", "no trace here"}}};
  CHECK(table(report).find("0/?/12/?") != std::string::npos);
  CHECK(table(report).find("doorbells: not counted: no trace here") != std::string::npos);
  const ordered_json out = json(report);
  CHECK(out["results"][0]["allocations"] == 0);
  CHECK(out["results"][0]["system_calls"].is_null());
  CHECK(out["results"][0]["doorbells"].is_null());
  CHECK(out["not_counted"]["doorbells"] == "no trace here");
}
