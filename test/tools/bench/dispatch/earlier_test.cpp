// Earlier reports: which ones are accepted, and how they compare.
#include "tools/bench/dispatch/earlier.hpp"

#include <nlohmann/json.hpp>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "tools/support/program.hpp"

using namespace uptempo::bench;
using nlohmann::ordered_json;

namespace {

Report report_of(std::vector<Series> series) {
  return {.device = "some GPU", .batches = {120}, .results = {std::move(series)}};
}

Series steady(const std::string& name, double ns) {
  return {name, 120, Phase::submit, std::vector<double>(20, ns)};
}

ordered_json written_report() {
  return json(report_of({steady("a", 10), steady("b", 5), steady("gone", 1)}));
}

EarlierReport earlier() { return parse_earlier(written_report().dump(), "old.json"); }

using uptempo::test::contains;
using uptempo::test::error_of;

std::string refusal(const std::string& text) {
  return error_of<uptempo::support::UsageError>([&] { parse_earlier(text, "old.json"); });
}

}  // namespace

TEST_CASE("a written_report report is read again, and compared figure by figure") {
  Report now = report_of({steady("a", 20), steady("b", 5), steady("fresh", 2)});
  CHECK(error_of<uptempo::support::UsageError>([&] { require_comparable(earlier(), now); }) ==
        "no error");
  const ordered_json out = comparison_json(earlier(), now);
  REQUIRE(out.size() == 4);
  CHECK(out[0] == ordered_json{{"name", "a"},
                               {"batch", 120},
                               {"phase", "submit"},
                               {"old", 10.0},
                               {"new", 20.0},
                               {"ratio", 2.0},
                               {"overlap", false}});
  CHECK(out[1]["overlap"] == true);
  CHECK(out[2]["name"] == "fresh");
  CHECK(out[2]["old"].is_null());
  CHECK(out[3]["name"] == "gone");
  CHECK(out[3]["new"].is_null());
  CHECK(out[3]["ratio"].is_null());
  const std::string text = comparison_table(earlier(), now);
  for (const char* part : {"old.json", "10.0 (10.0 .. 10.0)", "2.00", "dearer", "intervals overlap",
                           "not measured now"})
    CHECK(contains(text, part));
  now.results.all[0] = steady("a", 2);
  CHECK(contains(comparison_table(earlier(), now), "cheaper"));
}

TEST_CASE("figures whose intervals touch are not distinguished") {
  Series wide = steady("a", 12);
  std::fill_n(wide.ns_per_dispatch.begin(), 7, 10.0);  // 10 .. 12
  CHECK(comparison_json(earlier(), report_of({wide}))[0]["overlap"] == true);
}

TEST_CASE("reports from other conditions are not compared") {
  const auto refused = [](auto&& change) {
    Report now = report_of({steady("a", 10)});
    change(now);
    return error_of<uptempo::support::UsageError>([&] { require_comparable(earlier(), now); });
  };
  CHECK(contains(refused([](Report& now) { now.device = "another GPU"; }),
                 "measured on some GPU, this is another GPU"));
  CHECK(contains(refused([](Report& now) { now.is_virtual = false; }),
                 "on the virtual GPU, this is hardware"));
  CHECK(contains(refused([](Report& now) { now.kernels_executed = true; }), "use --kernels null"));
}

TEST_CASE("foreign, truncated, damaged and newer files are refused by name, with the reason") {
  const std::string text = written_report().dump();
  for (size_t length = 0; length < text.size(); ++length) {
    const std::string error = refusal(text.substr(0, length));
    CAPTURE(length, error);
    REQUIRE(contains(error, "--compare 'old.json': it is not JSON, or is truncated at byte"));
  }
  CHECK(contains(refusal("{}"), "it is not a report of dispatch_bench"));
  CHECK(contains(refusal("[1]"), "it is not a report of dispatch_bench"));
  const auto changed = [](const char* key, const ordered_json& value) {
    ordered_json out = written_report();
    out[key] = value;
    return refusal(out.dump());
  };
  CHECK(contains(changed("format", "uptempo-dispatch-bench-2"),
                 "newer dispatch_bench: its format is uptempo-dispatch-bench-2, this version reads "
                 "uptempo-dispatch-bench-1"));
  CHECK(contains(changed("format", "uptempo-dispatch-bench-x"),
                 "it is not a report of dispatch_bench"));
  CHECK(contains(changed("format", "google-benchmark"), "it is not a report of dispatch_bench"));
  CHECK(contains(changed("kernels", "some"), "damaged"));
  CHECK(contains(changed("device", 7), "damaged"));
  CHECK(contains(changed("results", {{{"name", "a"}}}), "damaged"));
  ordered_json impossible = written_report();
  impossible["results"][0]["low"] = -1;
  CHECK(contains(refusal(impossible.dump()), "has impossible figures"));
  CHECK(contains(error_of<uptempo::support::UsageError>([] { read_earlier("/no/such/file.json"); }),
                 "cannot read '/no/such/file.json': No such file"));
}

TEST_CASE("a report with any byte changed is read or refused, and nothing else") {
  const std::string text = written_report().dump();
  for (size_t at = 0; at < text.size(); ++at) {
    for (const char byte : {'\0', '"', '9', '-', '{', 'e', '\xff'}) {
      std::string damaged = text;
      damaged[at] = byte;
      refusal(damaged);  // anything but a UsageError ends the test
    }
  }
}
