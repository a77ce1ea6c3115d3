#include "tools/fence_scope/report/report_charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <uptempo/aql/text.hpp>
#include "tools/support/svg.hpp"

namespace uptempo::fence_scope {
namespace {

using support::svg_text;

// Narrow enough for a phone without much scaling.
constexpr double kWidth = 500;

constexpr const char* kChartStyles =
    R"(.correct { fill: #1a7f37; } .stale { fill: #cf222e; } .unordered { fill: #8250df; } .unknown { fill: #9a6700; }
  .grid { stroke: #d8dee4; } .whisker { stroke: #1f2328; stroke-width: 1.5; fill: none; } .line { fill: none; stroke-width: 2; }
  .c0 { stroke: #0969da; } .c1 { stroke: #cf222e; } .c2 { stroke: #1a7f37; } .c3 { stroke: #8250df; } .c4 { stroke: #9a6700; } .c5 { stroke: #57606a; })";
constexpr const char* kDarkStyles =
    R"(.correct { fill: #3fb950; } .stale { fill: #ff7b72; } .unordered { fill: #d2a8ff; } .unknown { fill: #e3b341; }
    .grid { stroke: #30363d; } .whisker { stroke: #e6edf3; }
    .c0 { stroke: #58a6ff; } .c1 { stroke: #ff7b72; } .c2 { stroke: #56d364; } .c3 { stroke: #d2a8ff; } .c4 { stroke: #e3b341; } .c5 { stroke: #9198a1; })";

// The name in a chart: the part that the heading does not contain.
std::string short_label(const Cell& cell, bool with_position) {
  std::string text = with_position ? name_of(cell.position) + ": " : "";
  if (cell.label != flags_label(cell.flags)) return text + cell.label;
  return text +
         fmt::format("{}, {}/{}", cell.flags.barrier == aql::Barrier::on ? "barrier" : "no barrier",
                     aql::scope_name(cell.flags.acquire), aql::scope_name(cell.flags.release));
}

// The times in a chart: the host's clock, or one model.
struct Clock {
  bool modelled;
  std::string title;  // without a unit

  double us(const Cell& cell) const { return modelled ? cell.model->us : cell.gated.median_us; }
  bool has_time(const Cell& cell) const { return std::isfinite(us(cell)) && us(cell) > 0; }
  double relative(const Section& section, const Cell& cell) const {
    return modelled ? model_relative(section, cell) : cell.relative;
  }
};

Clock clock_of(const Report& report, const Section& section) {
  if (report.time_kind == TimeKind::hardware) return {false, "gated time"};
  const std::optional<ModelTime>& model = section.cells.front()->model;
  const bool modelled = model && std::ranges::all_of(section.cells, [&](const Cell* cell) {
                          return cell->model && model_text(*cell->model) == model_text(*model);
                        });
  return modelled ? Clock{true, model_text(*model)} : Clock{false, "gated virtual GPU time"};
}

std::string fitted(std::string text, size_t most) {
  if (text.size() <= most) return text;
  size_t cut = most - 1;
  // do not cut within a UTF-8 character
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;
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
  constexpr double kRight = 408, kRow = 20, kTop = 62;
  constexpr size_t kMostCharacters = 38;
  const Clock clock = clock_of(report, section);
  std::vector<const Cell*> cells;
  const Cell& like = *section.cells.back();  // the largest size of a sweep
  for (const Cell* cell : section.cells)
    if (clock.has_time(*cell) && cell->kernels == like.kernels &&
        cell->bytes_per_kernel == like.bytes_per_kernel &&
        cell->working_set_bytes == like.working_set_bytes)
      cells.push_back(cell);
  if (cells.size() < 2) return {};
  // If all cells but the baseline have one position, the heading names it.
  std::set<Position> positions;
  for (const Cell* cell : cells)
    if (!cell->baseline) positions.insert(cell->position);
  std::ranges::stable_sort(cells, {}, [&](const Cell* cell) {
    return std::pair(cell->judgement.verdict != Verdict::correct, clock.us(*cell));
  });

  const auto interval = [&](const Cell& cell) {
    return !clock.modelled && std::isfinite(cell.gated.low_us) && std::isfinite(cell.gated.high_us);
  };
  std::vector<std::string> labels;
  double most = 0, characters = 0;
  for (const Cell* cell : cells) {
    most = std::max({most, clock.us(*cell), interval(*cell) ? cell->gated.high_us : 0});
    const std::string mark = cell->recommended ? "> " : cell->baseline ? "= " : "";
    labels.push_back(fitted(mark + short_label(*cell, positions.size() > 1), kMostCharacters));
    characters = std::max(characters, static_cast<double>(labels.back().size()));
  }
  // 13 px text, in fonts as wide as DejaVu Sans
  const double left = 24 + 7.1 * characters;
  const auto x = [&](double us) { return left + (kRight - left) * std::min(us, most) / most; };
  const double bottom = kTop + kRow * static_cast<double>(cells.size());
  std::string out =
      svg_text(16, 24, "title",
               fmt::format("Correct first, {} on top", clock.modelled ? "cheapest" : "fastest"));
  out += svg_text(16, 43, "quiet",
                  clock.title + (clock.modelled ? ", in us" : " in us, with intervals") +
                      "; > recommended, = baseline");
  for (double us = 0; us <= most; us += nice_step(most)) {
    out += fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/>\n", x(us), kTop - 4,
                       bottom);
    out += svg_text(x(us), bottom + 16, "quiet", fmt::format("{:.6g}", us), "middle");
  }
  double y = kTop;
  for (size_t i = 0; i < cells.size(); ++i, y += kRow) {
    const Cell& cell = *cells[i];
    out += svg_text(left - 8, y + 14, "text", labels[i], "end");
    out += fmt::format(
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "fill-opacity=\"0.75\"/>\n",
        name_of(cell.judgement.verdict), left, y + 3, x(clock.us(cell)) - left, kRow - 6);
    if (interval(cell))
      out += fmt::format(
          "<path class=\"whisker\" d=\"M{0:.1f} {1:.1f}H{2:.1f}M{0:.1f} {3:.1f}v6M{2:.1f} "
          "{3:.1f}v6\"/>\n",
          x(cell.gated.low_us), y + kRow / 2, x(cell.gated.high_us), y + kRow / 2 - 3);
    out += svg_text(
        kRight + 8, y + 14, "text",
        fmt::format("{} {}{}", sign_of(cell.judgement.verdict), microseconds_text(clock.us(cell)),
                    !clock.modelled && cell.gated.noisy ? "?" : ""));
  }
  return support::svg_image(kWidth, bottom + 28, "Times of the settings of " + section.workload,
                            kChartStyles, kDarkStyles, out);
}

namespace {

// The sizes that may vary, in the order of sizes_of().
struct Axis {
  const char* title;
  bool bytes;
};
constexpr std::array kAxes{Axis{"kernels in the sequence", false}, Axis{"bytes per kernel", true},
                           Axis{"working set", true}};
constexpr size_t kWorkingSet = 2;

std::array<double, 3> sizes_of(const Cell& cell) {
  return {static_cast<double>(cell.kernels), static_cast<double>(cell.bytes_per_kernel),
          static_cast<double>(cell.working_set_bytes)};
}

using Cells = std::vector<const Cell*>;

size_t values_on(size_t axis, const Cells& cells) {
  std::set<double> values;
  for (const Cell* cell : cells) values.insert(sizes_of(*cell)[axis]);
  return values.size();
}

// The longest series of cells that differ in this size only; empty if it never varies alone. A
// working set that is a multiple of the size varies with it.
Cells along(size_t axis, const Cells& cells) {
  Cells longest;
  for (const bool multiple : {false, true}) {
    std::map<std::array<double, 3>, Cells> groups;
    for (const Cell* cell : cells) {
      std::array<double, 3> others = sizes_of(*cell);
      if (multiple && axis != kWorkingSet && others[axis] != 0) others[kWorkingSet] /= others[axis];
      others[axis] = 0;
      groups[others].push_back(cell);
    }
    for (const auto& [others, group] : groups)
      if (const size_t values = values_on(axis, group);
          values > std::max<size_t>(values_on(axis, longest), 1))
        longest = group;
  }
  return longest;
}

std::string sweep_chart(const Clock& clock, const Section& section, size_t number,
                        const Cells& cells) {
  constexpr double kLeft = 64, kRight = 476, kTop = 62, kHeight = 200, kLegendRow = 18;
  constexpr size_t kMostLines = 6;
  struct Line {
    std::string label;
    Cells points;
  };
  const Axis& axis = kAxes[number];
  const auto size_of = [=](const Cell& cell) { return sizes_of(cell)[number]; };
  const auto relative = [&](const Cell& cell) { return clock.relative(section, cell); };
  std::vector<Line> lines;
  double most = 1, first = HUGE_VAL, last = 0;
  std::set<double> ticks;
  for (const Cell* cell : cells) {
    if (!std::isfinite(relative(*cell)) || size_of(*cell) <= 0) continue;
    const std::string label = short_label(*cell, false);
    auto line = std::ranges::find(lines, label, &Line::label);
    if (line == lines.end()) line = lines.insert(line, {label, {}});
    line->points.push_back(cell);
    most = std::max(most, relative(*cell));
    first = std::min(first, size_of(*cell));
    last = std::max(last, size_of(*cell));
    ticks.insert(size_of(*cell));
  }
  if (ticks.size() < 2) return {};
  const size_t drawn = std::min(lines.size(), kMostLines);
  const auto x = [&](double value) {
    return kLeft + (kRight - kLeft) * std::log(value / first) / std::log(last / first);
  };
  const auto y = [&](double share) { return kTop + kHeight * (1 - share / most); };

  std::string out = svg_text(16, 24, "title", fmt::format("Over {}", axis.title));
  out += svg_text(16, 43, "quiet",
                  clock.title + (clock.modelled ? ", times" : ", ratio by round to") +
                      " the baseline's of the same size");
  const double step = nice_step(most);
  for (double share = 0; share <= most + step / 100; share += step) {
    out += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", kLeft, y(share),
                       kRight);
    out += svg_text(kLeft - 8, y(share) + 4, "quiet", fmt::format("{:.3g}x", share), "end");
  }
  double free = -1;
  for (const double tick : ticks) {
    out += fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/>\n", x(tick), kTop,
                       kTop + kHeight);
    if (x(tick) < free) continue;  // its label would touch the previous one
    free = x(tick) + 56;
    out +=
        svg_text(x(tick), kTop + kHeight + 17, "quiet",
                 axis.bytes ? bytes_text(static_cast<uint64_t>(tick)) : fmt::format("{:.6g}", tick),
                 "middle");
  }
  constexpr const char* kDashes[] = {"", "7 4", "2 3", "10 3 2 3", "4 4", "1 4"};
  double legend = kTop + kHeight + 42;
  for (size_t i = 0; i < drawn; ++i) {
    std::ranges::stable_sort(lines[i].points, {}, [&](const Cell* cell) { return size_of(*cell); });
    std::string path;
    for (const Cell* cell : lines[i].points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(size_of(*cell)),
                          y(relative(*cell)));
      out += svg_text(x(size_of(*cell)), y(relative(*cell)) + 4,
                      name_of(cell->judgement.verdict).c_str(), sign_of(cell->judgement.verdict),
                      "middle");
    }
    out += fmt::format("<path class=\"line c{0}\" stroke-dasharray=\"{1}\" d=\"{2}\"/>\n", i,
                       kDashes[i], path);
    out += fmt::format(
        "<path class=\"line c{0}\" stroke-dasharray=\"{1}\" d=\"M{2:.1f} {3:.1f}h34\"/>\n", i,
        kDashes[i], kLeft, legend - 4);
    out += svg_text(kLeft + 44, legend, "text", fitted(lines[i].label, 52));
    legend += kLegendRow;
  }
  if (drawn < lines.size()) {
    out +=
        svg_text(kLeft, legend, "quiet", fmt::format("{} more in the table", lines.size() - drawn));
    legend += kLegendRow;
  }
  return support::svg_image(kWidth, legend,
                            fmt::format("Times of {} over {}", section.workload, axis.title),
                            kChartStyles, kDarkStyles, out);
}

}  // namespace

std::vector<std::string> sweep_charts(const Report& report, const Section& section) {
  const Clock clock = clock_of(report, section);
  std::vector<std::string> charts;
  const auto add = [&](size_t axis, const Cells& cells) {
    if (std::string chart = sweep_chart(clock, section, axis, cells); !chart.empty())
      charts.push_back(std::move(chart));
  };
  for (size_t axis = 0; axis < kAxes.size(); ++axis) add(axis, along(axis, section.cells));
  for (size_t axis = 0; charts.empty() && axis < kAxes.size(); ++axis)
    if (values_on(axis, section.cells) > 1) add(axis, section.cells);
  return charts;
}

}  // namespace uptempo::fence_scope
