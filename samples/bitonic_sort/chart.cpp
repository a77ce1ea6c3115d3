#include <fmt/format.h>

#include <algorithm>

#include "samples/bitonic_sort/report.hpp"
#include "tools/support/svg.hpp"

namespace uptempo::sort {
namespace {

using support::svg_text;

constexpr int kWidth = 720;
constexpr int kLeft = 150;  // space for the names of the rungs
constexpr int kBarsWidth = 370;
constexpr int kTop = 74;
constexpr int kRowHeight = 40;
constexpr int kBarHeight = 24;

constexpr const char* kStyles = R"(.bar { fill: #2f6fdb; } .first { fill: #8b949e; }
  .faster, .slower { font-size: 13px; } .faster { fill: #1a7f37; } .slower { fill: #c93c37; })";
constexpr const char* kDarkStyles = R"(.bar { fill: #58a6ff; } .first { fill: #6e7681; }
    .faster { fill: #56d364; } .slower { fill: #ff7b72; })";

}  // namespace

std::string svg(const Report& report) {
  double slowest = 0;
  for (const RungResult& result : report.rungs)
    slowest = std::max(slowest, result.us_per_iteration);
  const int height = kTop + kRowHeight * static_cast<int>(report.rungs.size()) + 34;
  const std::string time_name = report.is_virtual ? "virtual GPU time" : "time";

  std::string out = svg_text(20, 32, "title",
                             fmt::format("Bitonic sort: {} keys, {} kernels, {} per iteration",
                                         report.length, report.kernels, time_name));
  out += svg_text(20, 54, "quiet",
                  fmt::format("{}{}; median of {}", report.device,
                              report.is_virtual ? ", virtual GPU time: not a hardware time" : "",
                              report.iterations));
  for (size_t i = 0; i < report.rungs.size(); ++i) {
    const RungResult& result = report.rungs[i];
    const int top = kTop + kRowHeight * static_cast<int>(i);
    const int baseline = top + kBarHeight / 2 + 5;
    const int width = std::max(1, static_cast<int>(kBarsWidth * result.us_per_iteration / slowest));
    out += svg_text(kLeft - 10, baseline, "text", rung_label(report, i), "end");
    out +=
        fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"3\"/>\n",
                    i == 0 ? "first" : "bar", kLeft, top, width, kBarHeight);
    out += svg_text(kLeft + width + 8, baseline, "text",
                    fmt::format("{:.0f} us", result.us_per_iteration));
    if (i > 0)
      out += svg_text(kWidth - 76, baseline, result.delta_us <= 0 ? "faster" : "slower",
                      fmt::format("{:+.0f} us", result.delta_us), "end");
    out += svg_text(kWidth - 20, baseline, "text", fmt::format("{:.2f}x", result.speedup), "end");
  }
  out += svg_text(20, height - 14, "quiet",
                  report.rungs.size() == 1 ? "Switches: " + report.rungs[0].rung.name
                                           : "Each rung adds one switch to the previous rung. "
                                             "Timed: copy in, all kernels, copy back.");
  return support::svg_image(kWidth, height, time_name + " of a bitonic sort, rung by rung", kStyles,
                            kDarkStyles, out);
}

}  // namespace uptempo::sort
