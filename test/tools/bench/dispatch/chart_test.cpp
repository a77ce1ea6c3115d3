// Content of a chart. Its legibility is not tested.
#include "tools/bench/dispatch/chart.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"

using namespace uptempo::bench;
using uptempo::test::Approx;
using uptempo::test::count;

namespace {

Series steady(const std::string& name, uint32_t batch, Phase phase, double ns) {
  return {name, batch, phase, std::vector<double>(20, ns)};
}

Report report() {
  return {.device = "some <GPU>",
          .rounds = 20,
          .batches = {1, 32, 1024},
          .results = {{steady("hsa-careful", 1, Phase::submit, 100),
                       steady("hsa-careful", 32, Phase::submit, 10),
                       steady("hsa-careful", 1024, Phase::submit, 1),
                       steady("hip-launch", 1, Phase::submit, 1000),
                       steady("hsa-careful", 1, Phase::complete, 100)}}};
}

}  // namespace

TEST_CASE("a chart names device, mode, phases, rows and lengths of batch") {
  const std::string text = svg(report());
  for (const char* part :
       {"virtual GPU, not hardware: some &lt;GPU&gt;", "kernels not executed (null kernels)",
        "medians of 20 rounds", ">submit: host ns", ">complete: host ns", ">hip-launch<"})
    CHECK(count(text, part) == 1);
  // in both panels
  for (const char* part : {">hsa-careful<", ">1024<"}) CHECK(count(text, part) == 2);
  Report with_peers = report();
  with_peers.peers = {{.name = "HIP", .note = {}, .version = "HIP 6.4", .missing = {}},
                      {.name = "PoCL", .note = {}, .missing = "not found"}};
  CHECK(count(svg(with_peers), ">Host time per dispatch; HIP 6.4<") == 1);
  CHECK(count(svg(with_peers), "PoCL") == 0);
  Report real = report();
  real.is_virtual = false;
  real.kernels_executed = true;
  CHECK(count(svg(real), "virtual") == 0);
  CHECK(count(svg(real), "kernels executed") == 1);
}

TEST_CASE("both axes are logarithmic") {
  // A tenth of the time for each 32 times the dispatches: a straight line.
  const std::string text = svg(report());
  std::array<double, 6> at{};  // x and y of the first line of three points
  const auto three_points_at = [&](size_t path) {
    return std::sscanf(text.c_str() + path, " d=\"M%lf %lfL%lf %lfL%lf %lf\"", &at[0], &at[1],
                       &at[2], &at[3], &at[4], &at[5]) == 6;
  };
  size_t path = text.find(" d=\"M");
  while (path != std::string::npos && !three_points_at(path)) path = text.find(" d=\"M", path + 1);
  REQUIRE(path != std::string::npos);
  CHECK(at[2] - at[0] == Approx(at[4] - at[2]).margin(0.2));
  CHECK(at[3] - at[1] == Approx(at[5] - at[3]).margin(0.2));
  CHECK(at[1] < at[3]);
}

TEST_CASE("labels of lines that end at one point do not overlap, and stay next to the panel") {
  Report crowded{.device = "some GPU", .batches = {8}, .results = {}};
  for (int i = 0; i < 12; ++i)
    crowded.results.all.push_back(steady("row" + std::to_string(i), 8, Phase::submit, 10));
  const std::string_view label = "\" class=\"text\" text-anchor=\"start\">row";
  const auto labels_of = [&](const std::string& text) {
    double before = 0;
    size_t labels = 0;
    for (size_t end = text.find(label); end != std::string::npos;
         end = text.find(label, end + 1), ++labels) {
      const size_t begin = text.rfind("y=\"", end) + 3;
      const double y = std::stod(text.substr(begin, end - begin));
      CHECK(y >= before + 15);
      CHECK(y < 84 + 330 + 10);
      before = y;
    }
    return labels;
  };
  CHECK(labels_of(svg(crowded)) == 5);
  CHECK(labels_of(svg_of_rest(crowded)) == 7);
}

TEST_CASE("the first chart has five rows that differ in colour and mark, the second all others") {
  Report all{.device = "some GPU", .batches = {1, 8}, .results = {}};
  const std::vector<std::string> main{"floor-packets", "uptempo-batch", "uptempo-stream",
                                      "hip-launch", "hip-graph"};
  const std::vector<std::string> others{"floor-packets-kernargs", "hsa-careful", "uptempo-single",
                                        "uptempo-replay", "uptempo-launcher"};
  for (size_t i = 0; i < main.size(); ++i)
    for (const std::string& name : {others[i], main[i]})
      for (const uint32_t batch : {1u, 8u})
        all.results.all.push_back(steady(name, batch, Phase::submit, 10));
  const std::string first = svg(all), second = svg_of_rest(all);
  for (const std::string& name : main) {
    CHECK(count(first, '>' + name + '<') == 1);
    CHECK(count(second, '>' + name + '<') == 0);
  }
  for (const std::string& name : others) {
    CHECK(count(first, '>' + name + '<') == 0);
    CHECK(count(second, '>' + name + '<') == 1);
  }
  // A class of a mark is its colour; the path after its first coordinates is its shape.
  std::set<std::string> colours, shapes;
  for (size_t at = first.find("class=\"mark "); at != std::string::npos;
       at = first.find("class=\"mark ", at + 1)) {
    const size_t colour = at + 12, path = first.find('m', first.find(" d=\"", at));
    colours.insert(first.substr(colour, first.find('"', colour) - colour));
    shapes.insert(first.substr(path, first.find('M', path) - path));
  }
  CHECK(colours.size() == 5);
  CHECK(shapes.size() == 5);
}

TEST_CASE("a chart without data is refused") {
  CHECK_THROWS_AS(svg(Report{.batches = {1}, .results = {}}), std::runtime_error);
  CHECK_THROWS_AS(svg_of_rest(report()), std::runtime_error);  // has two rows
}
