#include "tools/fence_scope/report/report_html.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <uptempo/aql/text.hpp>
#include "tools/fence_scope/report/report_charts.hpp"
#include "tools/fence_scope/report/report_columns.hpp"
#include "tools/fence_scope/report/report_packets.hpp"
#include "tools/support/svg.hpp"

namespace uptempo::fence_scope {
namespace {

// Charts have their own styles for the classes title, text, quiet, ground, grid, line, whisker and
// those of the verdicts; other elements do not use these classes.
constexpr const char* kStyles = R"(
:root { color-scheme: light dark; --ground: #ffffff; --ink: #1f2328; --soft: #59636e; --edge: #d1d9e0; --band: #f6f8fa;
  --ok: #dafbe1; --stale: #ffebe9; --loose: #fbefff; --maybe: #fff8c5; --mark: #0969da; }
@media (prefers-color-scheme: dark) { :root { --ground: #0d1117; --ink: #e6edf3; --soft: #9198a1; --edge: #3d444d; --band: #151b23;
  --ok: #12331c; --stale: #431418; --loose: #2f1d4a; --maybe: #3b2e00; --mark: #58a6ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 16px 24px; max-width: 2000px; background: var(--ground); color: var(--ink); overflow-wrap: break-word;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.35rem; line-height: 1.35; margin: 0 0 .5rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; } h3 { font-size: 1rem; margin: 1.25rem 0 .4rem; }
p { margin: .4rem 0; } p, h1 { max-width: 1000px; } .soft { color: var(--soft); } .warn { border-left: 4px solid #bf8700; padding: .3rem .7rem; background: var(--band); }
.label { display: inline-block; border: 1px solid var(--edge); border-radius: 1em; padding: 0 .6em; font-size: .875rem; }
.charts { display: flex; flex-wrap: wrap; gap: 12px; } .charts > div { flex: 1 1 420px; min-width: 0; max-width: 640px; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { border: 1px solid var(--edge); padding: 4px 7px; text-align: left; vertical-align: top; } th { background: var(--band); font-weight: 600; }
.matrix { width: 100%; table-layout: fixed; } .square { min-width: 860px; } .matrix th:first-child { width: 9.5em; } .square tr:first-child th:nth-child(2) { width: 5.2em; } .square tbody { border-top: 2px solid var(--soft); } .matrix th, .legend td { overflow-wrap: normal; } .piece { display: inline-block; margin-right: .35em; }
.figures td { white-space: nowrap; } .figures td, .figures th { padding: 4px 5px; } .figures th { vertical-align: bottom; } .right { text-align: right; } .wide { overflow-x: auto; }
.v-correct { background: var(--ok); } .v-stale { background: var(--stale); } .v-unordered { background: var(--loose); } .v-unknown { background: var(--maybe); }
.chosen { outline: 3px solid var(--mark); outline-offset: -3px; } .legend td { border: 0; } .legend td:first-child { white-space: nowrap; }
.reasons td:first-child { white-space: nowrap; width: 9em; } code { font: .8125rem/1.5 ui-monospace, "DejaVu Sans Mono", monospace; } svg { width: 100%; height: auto; } summary { cursor: pointer; }
@media (max-width: 480px) { body { padding: 10px; } .matrix { font-size: .7rem; } .matrix th, .matrix td { padding: 3px 2px; } .matrix th:first-child { width: 7.4em; } }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } h1 { font-size: 14pt; } h2 { margin-top: 1.2rem; } h2, h3, .soft { break-after: avoid; } tr, svg, .square tbody, .headers tbody, .reasons tbody { break-inside: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } .charts > div { flex: 0 1 48%; } table, .matrix { font-size: 8pt; } th, td { padding: 2px 4px; }
  .wide { overflow: visible; } .square { min-width: 0; } .headers { width: 100%; } .headers td { white-space: nowrap; } .figures { font-size: 6.5pt; } .figures td, .figures th { white-space: normal; padding: 1px 3px; }
  details::details-content { content-visibility: visible; block-size: auto; } }
)";

std::string e(std::string_view text) { return html_escaped(text); }

std::string steps_text(const Report& report, const HeaderRun& run, size_t total) {
  const auto step = [&](size_t index) {
    std::string text = std::to_string(index);
    // Step names exist for cells of one workload only.
    if (report.steps.size() == total) text += " " + e(report.steps[index]);
    return text;
  };
  return run.count == 1 ? step(run.first)
                        : step(run.first) + " to " + step(run.first + run.count - 1);
}

// A row for each run of equal headers.
std::string headers_rows(const Report& report, const Cell& cell, const std::string& name) {
  const std::vector<HeaderRun> runs = runs_of(cell.headers);
  std::string out = fmt::format("<tbody><tr><th rowspan=\"{}\">{}</th>", runs.size(), e(name));
  for (size_t i = 0; i < runs.size(); ++i)
    out += fmt::format("{}<td>{}</td><td><code>0x{:04x}</code></td><td>{}</td></tr>\n",
                       i == 0 ? "" : "<tr>", steps_text(report, runs[i], cell.headers.size()),
                       aql::make_header(aql::PacketType::kernel_dispatch, runs[i].flags),
                       flags_label(runs[i].flags));
  return out + "</tbody>\n";
}

// The full name of a cell, for places without context.
std::string full_name(const Report& report, const Cell& cell) {
  std::string text = sections_of(report).size() > 1 ? cell.workload + ": " : "";
  if (cell.position != Position::all) text += name_of(cell.position) + ": ";
  text += cell.label;
  return cell.kernels == 0 ? text : fmt::format("{} ({})", text, counted(cell.kernels, "kernel"));
}

std::string headers(const Report& report) {
  const std::string head =
      "<div class=\"wide\"><table "
      "class=\"headers\">\n<tr><th></th><th>steps</th><th>header</th><th>in "
      "words</th></tr>\n";
  std::string chosen, others;
  size_t count = 0;
  for (const Cell* each : correct_first(cells_of(report))) {
    const Cell& cell = *each;
    if (cell.headers.empty()) continue;
    const bool is_chosen = cell.recommended || cell.baseline;
    std::string& rows = is_chosen ? chosen : others;
    const std::string more = headers_rows(report, cell,
                                          (cell.recommended ? "Recommended: "
                                           : cell.baseline  ? "Baseline: "
                                                            : "") +
                                              full_name(report, cell));
    if (rows.find(more) != std::string::npos) continue;  // another size with as many kernels
    rows += more;
    count += !is_chosen;
  }
  if (chosen.empty() && others.empty()) return {};
  std::string out =
      "<h2>Packet headers</h2>\n<p class=\"soft\">Of kernel dispatches: bits 0 to 7 type, 8 "
      "barrier, 9 and "
      "10 acquire, 11 and 12 release. "
      "A copy among the steps has no packet.</p>\n";
  if (!chosen.empty()) out += head + chosen + "</table></div>\n";
  if (!others.empty())
    out += fmt::format("<details><summary>{} more</summary>\n{}{}</table></div></details>\n",
                       counted(count, "cell"), head, others);
  return out;
}

std::string legend(const Report& report) {
  std::string out = "<table class=\"legend\">\n";
  for (const Verdict verdict :
       {Verdict::correct, Verdict::stale, Verdict::unordered, Verdict::unknown})
    if (std::ranges::any_of(report.cells,
                            [&](const Cell& cell) { return cell.judgement.verdict == verdict; }))
      out += fmt::format("<tr><td class=\"v-{0}\"><b>{1} {0}</b></td><td>{2}</td></tr>\n",
                         name_of(verdict), sign_of(verdict), meaning_of(verdict));
  out += "</table>\n";
  if (std::ranges::any_of(report.cells, [](const Cell& cell) {
        return cell.judgement.writer != Judgement::kNoStep ||
               cell.judgement.reader != Judgement::kNoStep;
      }))
    out +=
        "<p class=\"soft\">2&gt;3: step 2 writes data that step 3 touches, in either order.</p>\n";
  return out;
}

// A table with a row for each run of equal packets.
std::string packets(const Report& report) {
  if (report.packets.empty()) return {};
  std::string out = "<h2>The fewest fences for each packet, and why</h2>\n";
  if (const std::string opinion = checker_advice(report.packets); !opinion.empty())
    out += fmt::format("<p>In short, {}. {}</p>\n", e(opinion),
                       e(about_checker_advice(report.packets)));
  out += "<table class=\"reasons\">\n";
  for (const PacketRun run : runs_of(report.packets)) {
    const PlannedPacket& packet = report.packets[run.first];
    out += fmt::format("<tbody><tr><th colspan=\"2\">{}: header <code>0x{:04x}</code></th></tr>\n",
                       e(packets_title(report, run)),
                       aql::make_header(aql::PacketType::kernel_dispatch, packet.flags));
    const std::vector<PacketReason> reasons = reasons_of(packet);
    for (size_t i = 0; i < reasons.size(); ++i)
      out += fmt::format("<tr{}><td><b>{}</b></td><td>{}</td></tr>\n",
                         i < 3 ? "" : " class=\"soft\"", e(reasons[i].what), e(reasons[i].why));
    out += "</tbody>\n";
  }
  return out + "</table>\n";
}

std::string facts(const Report& report) {
  std::string out = "<h2>Measured with</h2>\n<div class=\"wide\"><table>\n";
  const auto row = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) out += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", e(name), e(value));
  };
  row("date", report.date);
  row("device", report.device);
  row("target", report.target);
  row("times", kind_text(report.time_kind));
  row("timing", fmt::format("Timing::{}", name_of(report.timing)));
  row("seed", std::to_string(report.seed));
  std::string command = "fence_scope";
  for (const std::string& word : report.command) command += ' ' + word;
  row("command", command);
  for (const auto& [name, version] : report.versions) row(name, version);
  for (const auto& [name, value] : report.environment) row(name, value.empty() ? "(empty)" : value);
  return out + "</table></div>\n";
}

}  // namespace

std::string html_escaped(std::string_view text) { return support::escaped(text, aql::Lines::kept); }

std::string html(const Report& report) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>fence_scope {} on "
      "{}</title>\n<style>{}</style>\n</head>\n<body>\n",
      e(report.experiment), e(report.device), kStyles);
  out += fmt::format("<h1>{}</h1>\n", e(report.conclusion));
  out +=
      fmt::format("<p>{}{}{} <span class=\"label\">{}</span></p>\n", e(report.date),
                  report.date.empty() ? "" : ", ", e(report.device), kind_text(report.time_kind));
  for (const std::string& warning : report.warnings)
    out += fmt::format("<p class=\"warn\"><b>Warning:</b> {}</p>\n", e(warning));
  const std::vector<std::string> models = models_of(cells_of(report));
  for (const std::string& model : models)
    out += fmt::format("<p><span class=\"label\">{}</span></p>\n", e(model));
  if (!models.empty())
    out +=
        "<p class=\"soft\">A model is an estimate from the profile of a device, not a "
        "measurement.</p>\n";
  if (!report.cells.empty()) out += legend(report);

  out += packets(report);
  for (const Section& section : sections_of(report)) {
    out += fmt::format("<h2>{}</h2>\n", e(title_of(report, section)));
    out += fmt::format(
        "<p class=\"soft\">Medians of one iteration, {}{}, ± half the width of their interval{}; "
        "then the ratio {}</p>\n",
        is_gated(section) ? "gated" : "ungated",
        report.time_kind == TimeKind::virtual_gpu ? ", virtual GPU time" : "",
        std::ranges::any_of(report.cells, is_noisy)
            ? " (? too noisy: stopped before the interval was narrow enough)"
            : "",
        is_gated(section) ? "by round. " + e(about_ratios()) : "of medians to the baseline.");
    out += cells_html(section);
    std::vector<std::string> charts = sweep_charts(report, section);
    charts.push_back(bar_chart(report, section));
    std::string boxes;
    for (const std::string& chart : charts)
      if (!chart.empty()) boxes += "<div>" + chart + "</div>\n";
    if (!boxes.empty()) out += "<h3>Charts</h3>\n<div class=\"charts\">\n" + boxes + "</div>\n";
    out += "<h3>All figures</h3>\n" + figures_html(report, section);
  }
  return out + headers(report) + facts(report) + "</body>\n</html>\n";
}

}  // namespace uptempo::fence_scope
