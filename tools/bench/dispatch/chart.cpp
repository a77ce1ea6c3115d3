#include "tools/bench/dispatch/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include "tools/support/svg.hpp"

namespace uptempo::bench {
namespace {

using support::svg_text;

constexpr double kWidth = 860, kLeft = 70, kRight = 640, kLabels = 662;  // x
constexpr double kTop = 84, kPanelHeight = 330, kPanelGap = 76;          // y
constexpr double kLabelHeight = 16;

// The rows of the first chart: their figures differ enough for a logarithmic axis. Later ones, and
// then any others, take the places of rows that the report does not have.
constexpr std::string_view kMain[] = {"floor-packets", "uptempo-batch", "uptempo-stream",
                                      "hip-launch",    "hip-graph",     "pocl",
                                      "hsa-careful",   "uptempo-replay"};
constexpr size_t kMainLines = 5;

// The look of a line: its number selects colour, mark and dashes. Five colours and six marks give
// 30 pairs, and lines of neighbouring numbers share neither. The colours differ for people who do
// not see red or green, too.
constexpr const char* kColours[] = {"c0", "c1", "c2", "c3", "c4"};
constexpr const char* kDashes[] = {"", "7 4", "2 3", "10 3 2 3"};  // by the use of a colour

// Marks at the points of a line, around the origin: circle, square, triangle, diamond, cross, plus.
constexpr const char* kMarks[] = {"m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
                                  "m-4 -4h8v8h-8z",
                                  "m0 -5l5 9h-10z",
                                  "m0 -5l5 5l-5 5l-5 -5z",
                                  "m-4 -4l8 8m0 -8l-8 8",
                                  "m-5 0h10m-5 -5v10"};

constexpr const char* kStyles = R"(.grid { stroke: #d8dee4; stroke-width: 1; }
  .line { fill: none; stroke-width: 2; } .leader { stroke-width: 0.7; fill: none; }
  .mark { stroke-width: 1.6; fill: #ffffff; }
  .c0 { stroke: #1f2328; } .c1 { stroke: #0040ff; } .c2 { stroke: #cf8217; } .c3 { stroke: #12a17b; } .c4 { stroke: #c970db; })";
constexpr const char* kDarkStyles = R"(.grid { stroke: #30363d; } .mark { fill: #0d1117; }
    .c0 { stroke: #e6edf3; } .c1 { stroke: #1a66ff; } .c2 { stroke: #cc3300; } .c3 { stroke: #33ff8b; } .c4 { stroke: #cc0081; })";

struct Line {
  std::string name;
  const char* style = "";
  const char* dashes = "";
  const char* mark = "";
  std::vector<const Series*> points;  // by ascending batch length
  double label_y = 0;
};

enum class Part : uint8_t { main, rest };

// The names of the first chart's rows, in the order of the report.
std::vector<std::string> main_names(const Report& report) {
  const std::vector<std::string> all = report.results.names();
  std::vector<std::string> chosen;
  const auto choose = [&](const std::string& name) {
    if (chosen.size() < kMainLines && std::ranges::find(chosen, name) == chosen.end())
      chosen.push_back(name);
  };
  for (const std::string_view name : kMain)
    if (std::ranges::find(all, name) != all.end()) choose(std::string(name));
  std::ranges::for_each(all, choose);
  std::ranges::sort(chosen, {}, [&](const std::string& name) {
    return std::ranges::find(all, name) - all.begin();
  });
  return chosen;
}

std::vector<Line> lines_of(const Report& report, Phase phase, Part part) {
  const std::vector<std::string> main = main_names(report);
  // Assigned before filtering by phase, so that a row looks alike in both panels.
  std::vector<Line> lines;
  for (const std::string& name : report.results.names()) {
    const bool is_main = std::ranges::find(main, name) != main.end();
    if (is_main != (part == Part::main)) continue;
    const size_t number = lines.size(), colour = number % std::size(kColours);
    lines.push_back({name,
                     kColours[colour],
                     kDashes[number / std::size(kColours) % std::size(kDashes)],
                     kMarks[number % std::size(kMarks)],
                     {}});
  }
  for (const Series& series : report.results.all) {
    const auto line = std::ranges::find(lines, series.name, &Line::name);
    if (line != lines.end() && series.phase == phase) line->points.push_back(&series);
  }
  std::erase_if(lines, [](const Line& line) { return line.points.empty(); });
  for (Line& line : lines)
    std::ranges::sort(line.points, {}, [](const Series* series) { return series->batch; });
  return lines;
}

// Positions of values: decades upwards, batch lengths from left to right.
struct Scales {
  double low_decade, high_decade, top;
  uint32_t first_batch, last_batch;

  double y(double ns) const {
    return top + kPanelHeight * (high_decade - std::log10(ns)) / (high_decade - low_decade);
  }
  double x(uint32_t batch) const {
    if (first_batch == last_batch) return (kLeft + kRight) / 2;
    return kLeft + (kRight - kLeft) * std::log2(double(batch) / first_batch) /
                       std::log2(double(last_batch) / first_batch);
  }
};

std::string axes(const Scales& scales, const std::vector<uint32_t>& batches) {
  std::string out;
  const double bottom = scales.top + kPanelHeight;
  for (double decade = scales.low_decade; decade <= scales.high_decade; ++decade) {
    for (const double step : {1.0, 2.0, 5.0}) {
      const double ns = step * std::pow(10, decade);
      if (std::log10(ns) > scales.high_decade + 1e-9) break;
      out += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", kLeft,
                         scales.y(ns), kRight);
      out += svg_text(kLeft - 8, scales.y(ns) + 4, "quiet", fmt::format("{:.6g}", ns), "end");
    }
  }
  for (const uint32_t batch : batches) {
    out += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>\n", scales.x(batch),
                       scales.top, bottom);
    out += svg_text(scales.x(batch), bottom + 17, "quiet", std::to_string(batch), "middle");
  }
  return out +
         svg_text((kLeft + kRight) / 2, bottom + 36, "quiet", "dispatches per batch", "middle");
}

// Places each label next to the end of its line, as near as the label's height allows.
void place_labels(std::vector<Line>& lines, const Scales& scales) {
  const auto end = [&](const Line& line) { return scales.y(line.points.back()->median()); };
  std::ranges::sort(lines, {}, end);
  double free = scales.top;
  for (Line& line : lines) {
    line.label_y = std::max(free, end(line));
    free = line.label_y + kLabelHeight;
  }
  double limit = scales.top + kPanelHeight;
  for (size_t i = lines.size(); i-- > 0; limit -= kLabelHeight)
    lines[i].label_y = limit = std::min(lines[i].label_y, limit);
}

std::string drawing(const Line& line, const Scales& scales) {
  std::string path, intervals, marks;
  for (const Series* point : line.points) {
    const support::MedianInterval ns = point->interval();
    const double x = scales.x(point->batch);
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, scales.y(ns.median));
    intervals += fmt::format("M{:.1f} {:.1f}V{:.1f}", x, scales.y(ns.low), scales.y(ns.high));
    marks += fmt::format("M{:.1f} {:.1f}{}", x, scales.y(ns.median), line.mark);
  }
  const Series& last = *line.points.back();
  const double end_x = scales.x(last.batch), end_y = scales.y(last.median());
  return fmt::format(
             "<path class=\"line {0}\" stroke-dasharray=\"{1}\" d=\"{2}\"/><path class=\"line "
             "{0}\" "
             "d=\"{3}\"/><path class=\"mark {0}\" d=\"{8}M{9:.1f} {7:.1f}{10}\"/>"
             "<path class=\"leader {0}\" stroke-dasharray=\"1 3\" d=\"M{4:.1f} {5:.1f}L{6:.1f} "
             "{7:.1f}\"/>"
             "<path class=\"line {0}\" stroke-dasharray=\"{1}\" d=\"M{6:.1f} {7:.1f}h26\"/>\n",
             line.style, line.dashes, path, intervals, end_x, end_y, kLabels - 8, line.label_y,
             marks, kLabels + 5, line.mark) +
         svg_text(kLabels + 24, line.label_y + 4, "text", line.name);
}

std::string panel(const Report& report, Phase phase, Part part, double top) {
  std::vector<Line> lines = lines_of(report, phase, part);
  if (lines.empty()) return {};
  double low = HUGE_VAL, high = 0;
  for (const Line& line : lines) {
    for (const Series* point : line.points) {
      low = std::min(low, point->interval().low);
      high = std::max(high, point->interval().high);
    }
  }
  const Scales scales{
      .low_decade = std::floor(std::log10(low)),
      .high_decade = std::max(std::ceil(std::log10(high)), std::floor(std::log10(low)) + 1),
      .top = top,
      .first_batch = report.batches.front(),
      .last_batch = report.batches.back()};
  place_labels(lines, scales);
  std::string out = svg_text(
      kLeft, top - 12, "text",
      fmt::format("{}: host ns per dispatch{}", phase_name(phase),
                  phase == Phase::submit ? ", until the last packet is published"
                                         : ", until the host sees the last dispatch complete"));
  out += axes(scales, report.batches);
  for (const Line& line : lines) out += drawing(line, scales);
  return out;
}

std::string chart(const Report& report, Part part) {
  std::string panels;
  double top = kTop;
  for (const Phase phase : {Phase::submit, Phase::complete}) {
    const std::string drawn = panel(report, phase, part, top);
    panels += drawn;
    if (!drawn.empty()) top += kPanelHeight + kPanelGap;
  }
  if (panels.empty())
    throw std::runtime_error(part == Part::main ? "the report has no figures to draw"
                                                : "the report has no more rows to draw");
  std::string title =
      part == Part::main ? "Host time per dispatch" : "Host time per dispatch, the other rows";
  for (const Peer& peer : report.peers)
    if (peer.missing.empty()) title += "; " + peer.version;
  const std::string heading =
      svg_text(20, 30, "title", title) +
      svg_text(20, 51, "quiet",
               fmt::format("{}{}; kernels {}; medians of {} rounds, bars: 95 % intervals",
                           report.is_virtual ? "virtual GPU, not hardware: " : "", report.device,
                           report.kernels_executed ? "executed" : "not executed (null kernels)",
                           report.rounds));
  return support::svg_image(kWidth, top - kPanelGap + 50, "Host time per dispatch, by batch length",
                            kStyles, kDarkStyles, heading + panels);
}

}  // namespace

std::string svg(const Report& report) { return chart(report, Part::main); }

std::string svg_of_rest(const Report& report) { return chart(report, Part::rest); }

}  // namespace uptempo::bench
