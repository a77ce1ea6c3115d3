// Content of a chart. Its legibility is not tested.
#include "tools/bench/dispatch/chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
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

struct Colour {
  double r, g, b;  // linear
};

Colour colour_of(const std::string& hex) {
  const auto channel = [&](size_t at) {
    const double value = std::stoi(hex.substr(at, 2), nullptr, 16) / 255.0;
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);  // sRGB
  };
  return {channel(1), channel(3), channel(5)};
}

double luminance(const Colour& colour) {
  return 0.2126 * colour.r + 0.7152 * colour.g + 0.0722 * colour.b;
}

// WCAG 2.1, contrast ratio.
double contrast(const Colour& a, const Colour& b) {
  const auto [low, high] = std::minmax(luminance(a), luminance(b));
  return (high + 0.05) / (low + 0.05);
}

using Vision = std::array<std::array<double, 3>, 3>;
// Without colour deficiency, without red cones, without green cones: Machado, Oliveira and
// Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency", 2009.
constexpr Vision kVisions[] = {{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
                               {{{0.152286, 1.052583, -0.204868},
                                 {0.114503, 0.786281, 0.099216},
                                 {-0.003882, -0.048116, 1.051998}}},
                               {{{0.367322, 0.860646, -0.227968},
                                 {0.280085, 0.672501, 0.047413},
                                 {-0.011820, 0.042940, 0.968881}}}};

// Distance in CIELAB (1976); about 2 is the least that people notice.
double distance(const Colour& a, const Colour& b, const Vision& vision) {
  const auto lab = [&](const Colour& colour) {
    const auto row = [&](size_t i) {
      return std::clamp(vision[i][0] * colour.r + vision[i][1] * colour.g + vision[i][2] * colour.b,
                        0.0, 1.0);
    };
    const double r = row(0), g = row(1), b_ = row(2);
    const auto f = [](double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116; };
    const double x = f((0.4124 * r + 0.3576 * g + 0.1805 * b_) / 0.9505),
                 y = f(0.2126 * r + 0.7152 * g + 0.0722 * b_),
                 z = f((0.0193 * r + 0.1192 * g + 0.9505 * b_) / 1.089);
    return std::array{116 * y - 16, 500 * (x - y), 200 * (y - z)};
  };
  const std::array from = lab(a), to = lab(b);
  return std::hypot(from[0] - to[0], from[1] - to[1], from[2] - to[2]);
}

// Colour class and shape of each mark in the image.
std::set<std::pair<std::string, std::string>> looks_of(const std::string& image) {
  std::set<std::pair<std::string, std::string>> looks;
  for (size_t at = image.find("class=\"mark "); at != std::string::npos;
       at = image.find("class=\"mark ", at + 1)) {
    const size_t colour = at + 12, path = image.find('m', image.find(" d=\"", at));
    looks.emplace(image.substr(colour, image.find('"', colour) - colour),
                  image.substr(path, image.find('M', path) - path));
  }
  return looks;
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
  std::set<std::string> colours, shapes;
  for (const auto& [colour, shape] : looks_of(first)) {
    colours.insert(colour);
    shapes.insert(shape);
  }
  CHECK(colours.size() == 5);
  CHECK(shapes.size() == 5);
}

TEST_CASE(
    "twelve rows of one family differ in colour or mark, also for those who see fewer colours") {
  Report family{.device = "some GPU", .batches = {8}, .results = {}};
  for (int i = 0; i < 17; ++i)
    family.results.all.push_back(steady("uptempo-" + std::to_string(i), 8, Phase::submit, 10 + i));
  const std::string image = svg_of_rest(family);
  const auto looks = looks_of(image);
  CHECK(looks.size() == 12);
  std::map<std::string, int> uses;
  for (const auto& [colour, shape] : looks) ++uses[colour];
  for (const auto& [colour, lines] : uses) CHECK(lines <= 3);

  const size_t dark = image.find("@media (prefers-color-scheme: dark)");
  for (const auto& [begin, ground] : {std::pair{size_t{0}, "#ffffff"}, {dark, "#0d1117"}}) {
    std::vector<Colour> colours;
    for (const auto& [name, lines] : uses) {
      const std::string rule = "." + name + " { stroke: ";
      const size_t at = image.find(rule, begin);
      REQUIRE(at < image.find("</style>"));
      colours.push_back(colour_of(image.substr(at + rule.size(), 7)));
      CHECK(contrast(colours.back(), colour_of(ground)) >= 3);
    }
    for (size_t a = 0; a < colours.size(); ++a)
      for (size_t b = 0; b < a; ++b)
        for (const Vision& vision : kVisions) {
          CAPTURE(a, b, ground);
          CHECK(distance(colours[a], colours[b], vision) >= 30);
        }
  }
}

TEST_CASE("a chart without data is refused") {
  CHECK_THROWS_AS(svg(Report{.batches = {1}, .results = {}}), std::runtime_error);
  CHECK_THROWS_AS(svg_of_rest(report()), std::runtime_error);  // has two rows
}
