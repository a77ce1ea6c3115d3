#include "samples/bitonic_sort/report.hpp"

#include <nlohmann/json.hpp>
#include <sstream>

#include "test/support/catch.hpp"

using namespace uptempo;
using namespace uptempo::sort;
using uptempo::test::Approx;

namespace {

// The figures of AMD's article, as if every iteration took exactly that long.
Report article_report(uint32_t iterations = 3) {
  const std::vector<double> us{1943, 1906, 1869, 1665, 1221, 1137};
  size_t call = 0;
  auto rungs = measure(ladder(), iterations, [&](const Switches& switches) {
    Iteration iteration{.us = us[call++ % us.size()], .counts = {}};
    iteration.counts.signals_created = switches.prealloc_signal ? 0 : 1;
    iteration.counts.host_waits = switches.avoid_host_sync ? 1 : 120;
    iteration.counts.bytes_staged = switches.pinned_host ? 0 : 262144;
    (switches.pinned_host ? iteration.counts.copies_pinned : iteration.counts.copies_staged) = 2;
    return iteration;
  });
  return {.device = "AMD Instinct MI210 (gfx90a)",
          .is_virtual = true,
          .length = 32768,
          .kernels = 120,
          .workgroup = 256,
          .iterations = iterations,
          .seed = 1,
          .descending = false,
          .verified = true,
          .rungs = std::move(rungs)};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("rungs alternate, iteration by iteration") {
  std::vector<Switches> order;
  measure(ladder(), 2, [&](const Switches& switches) {
    order.push_back(switches);
    return Iteration{.us = 1, .counts = {}};
  });
  REQUIRE(order.size() == 12);
  for (size_t i = 0; i < order.size(); ++i) CHECK(order[i] == ladder()[i % 6].switches);
}

TEST_CASE("delta is relative to the previous rung, speed-up to the first, both of medians") {
  const Report report = article_report();
  CHECK(report.rungs[0].delta_us == 0);
  CHECK(report.rungs[0].speedup == 1);
  CHECK(report.rungs[3].delta_us == -204);
  CHECK(report.rungs[4].delta_us == -444);
  CHECK(report.rungs[5].delta_us == -84);
  CHECK(report.rungs[5].speedup == Approx(1943.0 / 1137.0));

  int call = 0;
  const auto one = measure({{"baseline", {}}}, 5, [&](const Switches&) {
    return Iteration{.us = std::vector<double>{9, 1, 2, 100, 3}[static_cast<size_t>(call++)],
                     .counts = {}};
  });
  CHECK(one[0].us_per_iteration == 3);
}

TEST_CASE("a wrong result counts against its rung, and the table shows it prominently") {
  Report report = article_report();
  report.rungs = measure(ladder(), 4, [](const Switches& switches) {
    return Iteration{.us = 1, .counts = {}, .correct = !switches.fence || switches.pinned_host};
  });
  report.verified = false;
  CHECK(report.rungs[4].wrong_iterations == 4);
  CHECK(report.rungs[5].wrong_iterations == 0);
  CHECK(contains(table(report), "WRONG RESULTS: fence (4 of 4 iterations)."));
}

TEST_CASE("the table fits 80 columns, also when times and counts are large") {
  Report report = article_report();
  for (const auto& line : lines_of(table(report))) CHECK(line.size() <= 80);
  for (RungResult& result : report.rungs) {
    result.us_per_iteration *= 10000;
    result.delta_us *= 10000;
    for (double& us : result.iteration_us) us *= 10000;
    result.counts.bytes_staged = 2u << 26;
    result.counts.copies_pinned_for_once = 2;
    result.counts.copies_on_device = 2;
    result.counts.copies_staged = 600;
  }
  for (const auto& line : lines_of(table(report))) {
    CAPTURE(line);
    CHECK(line.size() <= 80);
  }
}

TEST_CASE("an interval is shown only where there are enough iterations for 95 %") {
  CHECK_FALSE(contains(table(article_report(5)), "1943.0 .. 1943.0"));
  CHECK(contains(table(article_report(6)), "1943.0 .. 1943.0"));
  CHECK(json(article_report(5))["rungs"][0]["us_coverage"].get<double>() < 0.95);
  CHECK(json(article_report(6))["rungs"][0]["us_coverage"].get<double>() > 0.95);
}

TEST_CASE("a single rung is named above the tables, which keeps them within 80 columns") {
  for (const Switches& switches : {Switches{}, Switches{false, true, false, true, false},
                                   Switches{true, true, true, true, true}}) {
    Report report = article_report();
    report.rungs = measure({{name_of(switches), switches}}, 1,
                           [](const Switches&) { return Iteration{.us = 1, .counts = {}}; });
    const std::string text = table(report);
    CAPTURE(text);
    for (const auto& line : lines_of(text)) CHECK(line.size() <= 80);
    CHECK(contains(text, "Switches: "));
    CHECK(contains(text, "none\n") == (switches == Switches{}));
    for (const SwitchInfo& info : kSwitches)
      CHECK(contains(text, info.name) == switches.*info.member);
  }
}

TEST_CASE("the table labels the times of a virtual GPU, and only those") {
  Report report = article_report();
  CHECK(contains(table(report), "virtual GPU time"));
  report.is_virtual = false;
  CHECK_FALSE(contains(table(report), "virtual"));
}

TEST_CASE("a copy path that no rung used has no column") {
  const std::string text = table(article_report());
  CHECK(contains(text, "pinned"));
  CHECK_FALSE(contains(text, "pin-once"));
  CHECK_FALSE(contains(text, "device"));
}

TEST_CASE("unchecked results are not called verified") {
  Report report = article_report();
  report.verified.reset();
  CHECK(contains(table(report), "not verified"));
  CHECK(json(report)["verified"].is_null());
}

TEST_CASE(
    "the JSON has device, length, kernels, verified, and for each rung its figures and counts") {
  const auto out = nlohmann::json::parse(json(article_report()).dump());
  CHECK(out["device"] == "AMD Instinct MI210 (gfx90a)");
  CHECK(out["virtual_gpu"] == true);
  CHECK(out["length"] == 32768);
  CHECK(out["kernels"] == 120);
  CHECK(out["verified"] == true);
  CHECK(out["order"] == "ascending");
  REQUIRE(out["rungs"].size() == 6);
  const auto& rung = out["rungs"][3];
  CHECK(rung["name"] == "avoid-host-sync");
  CHECK(rung["switches"] == nlohmann::json{{"prealloc-signal", true},
                                           {"prealloc-kernarg", true},
                                           {"avoid-host-sync", true},
                                           {"fence", false},
                                           {"pinned-host", false}});
  CHECK(rung["us_per_iteration"] == 1665);
  CHECK(rung["us_low"] == 1665);
  CHECK(rung["us_high"] == 1665);
  CHECK(rung["delta_us"] == -204);
  CHECK(rung["speedup"].get<double>() == Approx(1943.0 / 1665.0));
  for (const char* count :
       {"signals_created", "kernarg_allocations", "host_waits", "doorbells", "system_acquires",
        "system_releases", "completion_signals", "bytes_staged", "pins", "unpins"}) {
    CAPTURE(count);
    CHECK(rung["counts"][count].is_number_unsigned());
  }
  CHECK(rung["counts"]["host_waits"] == 1);
  CHECK(rung["counts"]["copies_by_path"] ==
        nlohmann::json{{"pinned", 0}, {"pinned_for_once", 0}, {"staged", 2}, {"on_device", 0}});
}

TEST_CASE(
    "the chart has a bar for each rung in proportion to its time, names the device and labels the "
    "time") {
  const std::string chart = svg(article_report());
  CHECK(contains(chart, "AMD Instinct MI210 (gfx90a)"));
  CHECK(contains(chart, "virtual GPU time"));
  CHECK(contains(chart, "prefers-color-scheme: dark"));
  CHECK(contains(chart, "class=\"first\" x=\"150\" y=\"74\" width=\"370\""));
  const int last_bar = static_cast<int>(370 * 1137.0 / 1943.0);
  CHECK(contains(chart, "width=\"" + std::to_string(last_bar) + "\""));
  for (const Rung& rung : ladder()) CHECK(contains(chart, rung.name + "<"));
}

TEST_CASE("the chart of a single rung names its switches below, where there is room") {
  Report report = article_report();
  report.rungs = measure({{"prealloc-signal+fence", {true, false, false, true, false}}}, 1,
                         [](const Switches&) { return Iteration{.us = 1, .counts = {}}; });
  CHECK(contains(svg(report), ">these switches<"));
  CHECK(contains(svg(report), "Switches: prealloc-signal+fence<"));
}

TEST_CASE("the chart of a device whose name contains markup is well formed") {
  Report report = article_report();
  report.device = "a<b>&c";
  CHECK(contains(svg(report), "a&lt;b&gt;&amp;c"));
}
