#include <fmt/format.h>

#include <algorithm>

#include "bitonic_sort/report.hpp"

namespace uptempo::sort {
namespace {

constexpr int kWidth = 720;
constexpr int kLeft = 150;  // room for the names of the rungs
constexpr int kBarsWidth = 370;
constexpr int kTop = 74;
constexpr int kRowHeight = 40;
constexpr int kBarHeight = 24;

// Colours are declared for light ground; viewers that know prefers-color-scheme switch all of them together, ground included.
constexpr const char* kStyle = R"(<style>
  .ground { fill: #ffffff; } .title { fill: #1f2328; font-size: 17px; font-weight: 600; }
  .text { fill: #1f2328; font-size: 13px; } .faster, .slower { font-size: 13px; } .quiet { fill: #59636e; font-size: 12px; }
  .bar { fill: #2f6fdb; } .first { fill: #8b949e; } .faster { fill: #1a7f37; } .slower { fill: #c93c37; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; } .title, .text { fill: #e6edf3; } .quiet { fill: #9198a1; }
    .bar { fill: #58a6ff; } .first { fill: #6e7681; } .faster { fill: #56d364; } .slower { fill: #ff7b72; }
  }
</style>
)";

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

std::string text_at(int x, int y, const char* style, const std::string& text, const char* anchor = "start") {
  return fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y, style,
                     anchor, escaped(text));
}

}  // namespace

std::string svg(const Report& report) {
  double slowest = 0;
  for (const RungResult& result : report.rungs) slowest = std::max(slowest, result.us_per_iteration);
  const int height = kTop + kRowHeight * static_cast<int>(report.rungs.size()) + 34;
  const std::string time_name = report.is_virtual ? "virtual GPU time" : "time";

  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "role=\"img\" "
      "font-family=\"system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif\">\n"
      "<title>{2} of a bitonic sort, rung by rung</title>\n{3}<rect class=\"ground\" width=\"{0}\" "
      "height=\"{1}\" rx=\"6\"/>\n",
      kWidth, height, time_name, kStyle);
  out += text_at(20, 32, "title",
                 fmt::format("Bitonic sort: {} keys, {} kernels, {} per iteration", report.length,
                             report.kernels, time_name));
  out += text_at(
      20, 54, "quiet",
      fmt::format("{}{}; median of {}", report.device,
                  report.is_virtual ? ", virtual GPU time: not a hardware time" : "", report.iterations));
  for (size_t i = 0; i < report.rungs.size(); ++i) {
    const RungResult& result = report.rungs[i];
    const int top = kTop + kRowHeight * static_cast<int>(i);
    const int baseline = top + kBarHeight / 2 + 5;
    const int width = std::max(1, static_cast<int>(kBarsWidth * result.us_per_iteration / slowest));
    out += text_at(kLeft - 10, baseline, "text", rung_label(report, i), "end");
    out += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"3\"/>\n",
                       i == 0 ? "first" : "bar", kLeft, top, width, kBarHeight);
    out += text_at(kLeft + width + 8, baseline, "text", fmt::format("{:.0f} us", result.us_per_iteration));
    if (i > 0)
      out += text_at(kWidth - 76, baseline, result.delta_us <= 0 ? "faster" : "slower",
                     fmt::format("{:+.0f} us", result.delta_us), "end");
    out += text_at(kWidth - 20, baseline, "text", fmt::format("{:.2f}x", result.speedup), "end");
  }
  out +=
      text_at(20, height - 14, "quiet",
              report.rungs.size() == 1
                  ? "Switches: " + report.rungs[0].rung.name
                  : "Each rung adds one switch to those above it. Timed: copy in, all kernels, copy back.");
  return out + "</svg>\n";
}

}  // namespace uptempo::sort
