#include "fence_scope/report_charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "aql/text.hpp"
#include "support/svg.hpp"

namespace uptempo::fence_scope {
namespace {

using support::svg_text;

// Narrow enough to be read on a phone without being scaled down much.
constexpr double kWidth = 640;

constexpr const char* kStyles =
    R"(.correct { fill: #1a7f37; } .stale { fill: #cf222e; } .unordered { fill: #8250df; } .unknown { fill: #9a6700; }
  .grid { stroke: #d8dee4; } .whisker { stroke: #1f2328; stroke-width: 1.5; fill: none; } .line { fill: none; stroke-width: 2; }
  .c0 { stroke: #0969da; } .c1 { stroke: #cf222e; } .c2 { stroke: #1a7f37; } .c3 { stroke: #8250df; } .c4 { stroke: #9a6700; } .c5 { stroke: #57606a; })";
constexpr const char* kDarkStyles =
    R"(.correct { fill: #3fb950; } .stale { fill: #ff7b72; } .unordered { fill: #d2a8ff; } .unknown { fill: #e3b341; }
    .grid { stroke: #30363d; } .whisker { stroke: #e6edf3; }
    .c0 { stroke: #58a6ff; } .c1 { stroke: #ff7b72; } .c2 { stroke: #56d364; } .c3 { stroke: #d2a8ff; } .c4 { stroke: #e3b341; } .c5 { stroke: #9198a1; })";

// The name in a chart: what the heading does not say yet.
std::string short_label(const Cell& cell, bool with_position) {
  std::string text = with_position ? std::string(name_of(cell.position)) + ": " : "";
  if (cell.label != flags_label(cell.flags)) return text + cell.label;
  return text + fmt::format("{}, {}/{}", cell.flags.barrier == aql::Barrier::on ? "barrier" : "no barrier",
                            aql::scope_name(cell.flags.acquire), aql::scope_name(cell.flags.release));
}

std::string clock_text(const Report& report) {
  return report.time_kind == TimeKind::hardware ? "gated time in us" : "gated virtual GPU time in us";
}

bool known(const Times& times) { return std::isfinite(times.median_us) && times.median_us > 0; }

std::string fitted(std::string text, size_t most) {
  if (text.size() <= most) return text;
  size_t cut = most - 1;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;  // not within a character
  return text.substr(0, cut) + "…";
}

double nice_step(double range) {
  const double decade = std::pow(10, std::floor(std::log10(range / 4)));
  for (const double step : {1.0, 2.0, 5.0})
    if (step * decade >= range / 4) return step * decade;
  return 10 * decade;
}

}  // namespace

std::string bar_chart(const Report& report, const Section& section) {
  constexpr double kLabels = 232, kRight = 548, kRow = 20, kTop = 62;
  std::vector<const Cell*> cells;
  const Cell& like = *section.cells.back();  // of a sweep, the largest
  for (const Cell* cell : section.cells)
    if (known(cell->gated) && cell->kernels == like.kernels &&
        cell->bytes_per_kernel == like.bytes_per_kernel && cell->working_set_bytes == like.working_set_bytes)
      cells.push_back(cell);
  if (cells.size() < 2) return {};
  const bool positions =
      std::ranges::any_of(cells, [&](const Cell* cell) { return cell->position != cells.front()->position; });
  std::ranges::stable_sort(cells, {}, [](const Cell* cell) { return cell->gated.median_us; });

  double most = 0;
  for (const Cell* cell : cells)
    most =
        std::max({most, cell->gated.median_us, std::isfinite(cell->gated.high_us) ? cell->gated.high_us : 0});
  const auto x = [&](double us) { return kLabels + (kRight - kLabels) * std::min(us, most) / most; };
  const double bottom = kTop + kRow * static_cast<double>(cells.size());
  std::string out = svg_text(16, 24, "title", "Fastest first: " + fitted(section.workload, 48));
  out += svg_text(16, 43, "quiet",
                  clock_text(report) + ", medians and their intervals; > recommended, = baseline");
  for (double us = 0; us <= most; us += nice_step(most)) {
    out += fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/>\n", x(us), kTop - 4, bottom);
    out += svg_text(x(us), bottom + 16, "quiet", fmt::format("{:.6g}", us), "middle");
  }
  double y = kTop;
  for (const Cell* cell : cells) {
    const std::string mark = cell->recommended ? "> " : cell->baseline ? "= " : "";
    out += svg_text(kLabels - 8, y + 14, "text", fitted(mark + short_label(*cell, positions), 36), "end");
    out += fmt::format(
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "fill-opacity=\"0.75\"/>\n",
        name_of(cell->judgement.verdict), kLabels, y + 3, x(cell->gated.median_us) - kLabels, kRow - 6);
    if (std::isfinite(cell->gated.low_us) && std::isfinite(cell->gated.high_us))
      out += fmt::format(
          "<path class=\"whisker\" d=\"M{0:.1f} {1:.1f}H{2:.1f}M{0:.1f} {3:.1f}v6M{2:.1f} {3:.1f}v6\"/>\n",
          x(cell->gated.low_us), y + kRow / 2, x(cell->gated.high_us), y + kRow / 2 - 3);
    out += svg_text(kRight + 8, y + 14, "text",
                    fmt::format("{} {}{}", sign_of(cell->judgement.verdict),
                                microseconds_text(cell->gated.median_us), cell->gated.noisy ? "?" : ""));
    y += kRow;
  }
  return support::svg_image(kWidth, bottom + 28, "Times of the settings of " + section.workload, kStyles,
                            kDarkStyles, out);
}

std::string sweep_chart(const Report& report, const Section& section) {
  constexpr double kLeft = 64, kRight = 616, kTop = 62, kHeight = 260, kLegendRow = 18;
  constexpr size_t kMostLines = 6;
  struct Axis {
    const char* title;
    std::function<double(const Cell&)> of;
    bool bytes;
  };
  const Axis axes[] = {
      {"kernels in the sequence", [](const Cell& cell) { return double(cell.kernels); }, false},
      {"bytes per kernel", [](const Cell& cell) { return double(cell.bytes_per_kernel); }, true},
      {"working set in bytes", [](const Cell& cell) { return double(cell.working_set_bytes); }, true}};
  const Axis* axis = nullptr;
  for (const Axis& each : axes)
    if (axis == nullptr && std::ranges::any_of(section.cells, [&](const Cell* cell) {
          return each.of(*cell) != each.of(*section.cells.front());
        }))
      axis = &each;
  if (axis == nullptr) return {};

  struct Line {
    std::string label;
    std::vector<const Cell*> points;
  };
  std::vector<Line> lines;
  double low = HUGE_VAL, high = 0, first = HUGE_VAL, last = 0;
  std::vector<double> ticks;
  for (const Cell* cell : section.cells) {
    if (!known(cell->gated) || axis->of(*cell) <= 0) continue;
    const std::string label = short_label(*cell, false);
    auto line = std::ranges::find(lines, label, &Line::label);
    if (line == lines.end()) line = lines.insert(line, {label, {}});
    line->points.push_back(cell);
    low = std::min(low, cell->gated.median_us);
    high = std::max(high, cell->gated.median_us);
    first = std::min(first, axis->of(*cell));
    last = std::max(last, axis->of(*cell));
    if (std::ranges::find(ticks, axis->of(*cell)) == ticks.end()) ticks.push_back(axis->of(*cell));
  }
  if (lines.empty() || first == last) return {};
  const size_t drawn = std::min(lines.size(), kMostLines);
  const double bottom_decade = std::floor(std::log10(low)),
               top_decade = std::max(std::ceil(std::log10(high)), bottom_decade + 1);
  const auto x = [&](double value) {
    return kLeft + (kRight - kLeft) * std::log(value / first) / std::log(last / first);
  };
  const auto y = [&](double us) {
    return kTop + kHeight * (top_decade - std::log10(us)) / (top_decade - bottom_decade);
  };

  std::string out =
      svg_text(16, 24, "title", fmt::format("Over {}: {}", axis->title, fitted(section.workload, 36)));
  out += svg_text(16, 43, "quiet", clock_text(report) + ", medians; both axes logarithmic");
  for (double decade = bottom_decade; decade <= top_decade; ++decade) {
    for (const double step : {1.0, 2.0, 5.0}) {
      const double us = step * std::pow(10, decade);
      if (std::log10(us) > top_decade + 1e-9) break;
      out += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", kLeft, y(us), kRight);
      out += svg_text(kLeft - 8, y(us) + 4, "quiet", fmt::format("{:.6g}", us), "end");
    }
  }
  std::ranges::sort(ticks);
  double free = -1;
  for (const double tick : ticks) {
    out +=
        fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/>\n", x(tick), kTop, kTop + kHeight);
    if (x(tick) < free) continue;  // its label would touch the one before
    free = x(tick) + 56;
    out += svg_text(x(tick), kTop + kHeight + 17, "quiet",
                    axis->bytes ? bytes_text(static_cast<uint64_t>(tick)) : fmt::format("{:.6g}", tick),
                    "middle");
  }
  constexpr const char* kDashes[] = {"", "7 4", "2 3", "10 3 2 3", "4 4", "1 4"};
  double legend = kTop + kHeight + 42;
  for (size_t i = 0; i < drawn; ++i) {
    std::ranges::stable_sort(lines[i].points, {}, [&](const Cell* cell) { return axis->of(*cell); });
    std::string path;
    for (const Cell* cell : lines[i].points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(axis->of(*cell)),
                          y(cell->gated.median_us));
      out += svg_text(x(axis->of(*cell)), y(cell->gated.median_us) + 4,
                      name_of(cell->judgement.verdict).data(), sign_of(cell->judgement.verdict), "middle");
    }
    out +=
        fmt::format("<path class=\"line c{0}\" stroke-dasharray=\"{1}\" d=\"{2}\"/>\n", i, kDashes[i], path);
    out += fmt::format("<path class=\"line c{0}\" stroke-dasharray=\"{1}\" d=\"M{2:.1f} {3:.1f}h34\"/>\n", i,
                       kDashes[i], kLeft, legend - 4);
    out += svg_text(kLeft + 44, legend, "text", fitted(lines[i].label, 70));
    legend += kLegendRow;
  }
  if (drawn < lines.size()) {
    out += svg_text(kLeft, legend, "quiet", fmt::format("{} more are in the table", lines.size() - drawn));
    legend += kLegendRow;
  }
  return support::svg_image(kWidth, legend, fmt::format("Times of {} over {}", section.workload, axis->title),
                            kStyles, kDarkStyles, out);
}

}  // namespace uptempo::fence_scope
