#include "tools/fence_scope/report/report_html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <uptempo/aql/text.hpp>
#include "tools/fence_scope/report/report_columns.hpp"

namespace uptempo::fence_scope {
namespace {

// The content of a cell: verdict with the number of its reason, times, model.
std::string cell_content(const Section& section, const std::vector<Reason>& reasons,
                         const Cell& cell) {
  std::string out = fmt::format("<b>{} {}</b>", sign_of(cell.judgement.verdict),
                                in_html(verdict_text(cell.judgement)));
  const auto reason = std::ranges::find_if(reasons, [&](const Reason& each) {
    return std::ranges::find(each.cells, &cell) != each.cells.end();
  });
  if (reason != reasons.end())
    out += fmt::format(" <span class=\"soft\">[{}]</span>", reason - reasons.begin() + 1);
  const auto piece = [](std::string_view text) {
    return fmt::format("<span class=\"piece\">{}</span>", in_html(text));
  };
  if (const Times& times = is_gated(section) ? cell.gated : cell.ungated; timed(times)) {
    out += "<br>" + piece(times_text(times, " us"));
    if (std::isfinite(cell.relative)) out += piece(relative_text(cell.relative));
  }
  if (cell.model) {
    out += "<br><span class=\"soft\">" +
           piece(fmt::format("model {} us", microseconds_text(cell.model->us)));
    const double relative = model_relative(section, cell);
    if (std::isfinite(relative)) out += piece(relative_text(relative));
    // If all cells are alike, the head of the page has it.
    if (std::ranges::any_of(section.cells, [&](const Cell* other) {
          return other->model && other->model->restated != cell.model->restated;
        }))
      out += piece(cell.model->restated ? "restated" : "predicted");
    out += "</span>";
  }
  if (cell.recommended) out += "<br><b>recommended</b>";
  if (cell.baseline) out += "<br>baseline";
  return out;
}

// A table's field of a cell; null: a cell that was not run.
std::string field(const Section& section, const std::vector<Reason>& reasons, const Cell* cell) {
  if (cell == nullptr) return "<td class=\"soft\">not run</td>";
  return fmt::format("<td class=\"v-{}{}\">{}</td>", name_of(cell->judgement.verdict),
                     cell->recommended ? " chosen" : "", cell_content(section, reasons, *cell));
}

struct Group {
  std::vector<std::string> title;  // in parts
  std::vector<const Cell*> cells;
};

std::string title_of(const Group& group) {
  std::string out;
  for (const std::string& part : group.title) out += (out.empty() ? "" : "<br>") + in_html(part);
  return out;
}

// Cells that differ in their flags alone.
std::vector<Group> groups_of(const Section& section) {
  std::vector<Group> groups;
  const bool kernels = differ(section, &Cell::kernels),
             bytes = differ(section, &Cell::bytes_per_kernel),
             set = differ(section, &Cell::working_set_bytes),
             position = differ(section, &Cell::position);
  for (const Cell* cell : section.cells) {
    std::vector<std::string> title;
    if (position || !(kernels || bytes || set))
      title.push_back(cell->position == Position::all     ? "All packets"
                      : cell->position == Position::first ? "First packet"
                      : cell->position == Position::last
                          ? "Last packet"
                          : "Packets between the first and the last");
    if (kernels) title.push_back(counted(cell->kernels, "kernel"));
    if (bytes) title.push_back(bytes_text(cell->bytes_per_kernel) + " each");
    if (set) title.push_back("working set " + bytes_text(cell->working_set_bytes));
    auto group = std::ranges::find(groups, title, &Group::title);
    if (group == groups.end()) group = groups.insert(group, {title, {}});
    group->cells.push_back(cell);
  }
  return groups;
}

// Whether the cells fill at least half of a square of acquire and release.
bool is_matrix(const Group& group) {
  return group.cells.size() >= 5 && std::ranges::all_of(group.cells, [](const Cell* cell) {
           return cell->label == flags_label(cell->flags);
         });
}

// One table for all groups: rows for each group and acquire scope, columns for the barrier bit and
// each release scope.
std::string matrix(const Section& section, const std::vector<Reason>& reasons,
                   const std::vector<Group>& groups) {
  if (groups.empty()) return {};
  constexpr std::array kScopes{aql::FenceScope::none, aql::FenceScope::agent,
                               aql::FenceScope::system};
  const auto any = [&](auto&& has) {
    return std::ranges::any_of(
        groups, [&](const Group& group) { return std::ranges::any_of(group.cells, has); });
  };
  std::vector<aql::Barrier> barriers;
  for (const aql::Barrier barrier : {aql::Barrier::on, aql::Barrier::off})
    if (any([&](const Cell* cell) { return cell->flags.barrier == barrier; }))
      barriers.push_back(barrier);
  std::string out =
      "<div class=\"wide\"><table class=\"matrix square\">\n<tr><th rowspan=\"2\">changed "
      "packets</th><th rowspan=\"2\">acquire</th>";
  for (const aql::Barrier barrier : barriers)
    out += fmt::format("<th colspan=\"3\">{} barrier bit</th>",
                       barrier == aql::Barrier::on ? "with" : "without");
  out += "</tr>\n<tr>";
  for (size_t i = 0; i < barriers.size(); ++i)
    for (const aql::FenceScope release : kScopes)
      out += fmt::format("<th>release {}</th>", aql::scope_name(release));
  out += "</tr>\n";
  for (const Group& group : groups) {
    std::vector<aql::FenceScope> acquires;
    for (const aql::FenceScope acquire : kScopes)
      if (std::ranges::any_of(group.cells,
                              [&](const Cell* cell) { return cell->flags.acquire == acquire; }))
        acquires.push_back(acquire);
    out += fmt::format("<tbody><tr><th rowspan=\"{}\">{}</th>", acquires.size(), title_of(group));
    for (const aql::FenceScope acquire : acquires) {
      out += fmt::format("{}<th>{}</th>", acquire == acquires.front() ? "" : "<tr>",
                         aql::scope_name(acquire));
      for (const aql::Barrier barrier : barriers)
        for (const aql::FenceScope release : kScopes) {
          const auto cell = std::ranges::find(
              group.cells, aql::HeaderFlags{barrier, acquire, release}, &Cell::flags);
          out += field(section, reasons, cell == group.cells.end() ? nullptr : *cell);
        }
      out += "</tr>\n";
    }
    out += "</tbody>\n";
  }
  return out + "</table></div>\n";
}

// Groups that are no matrix: a row for each group, a column for each label; or a row for each label
// if there is one group.
std::string list(const Section& section, const std::vector<Reason>& reasons,
                 const std::vector<Group>& groups) {
  if (groups.empty()) return {};
  std::string out = "<table class=\"matrix rows\">\n";
  if (groups.size() == 1) {
    for (const Cell* cell : correct_first(groups.front().cells))
      out += fmt::format("<tr><th>{}</th>{}</tr>\n", in_html(cell->label),
                         field(section, reasons, cell));
    return out + "</table>\n";
  }
  std::vector<std::string> labels;
  for (const Group& group : groups)
    for (const Cell* cell : group.cells)
      if (std::ranges::find(labels, cell->label) == labels.end()) labels.push_back(cell->label);
  out += "<tr><th></th>";
  for (const std::string& label : labels) out += fmt::format("<th>{}</th>", in_html(label));
  out += "</tr>\n";
  for (const Group& group : groups) {
    out += fmt::format("<tr><th>{}</th>", title_of(group));
    for (const std::string& label : labels) {
      const auto cell = std::ranges::find(group.cells, label, &Cell::label);
      out += field(section, reasons, cell == group.cells.end() ? nullptr : *cell);
    }
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

std::string reasons_html(const std::vector<Reason>& reasons) {
  if (reasons.empty()) return {};
  std::string out = "<h3>Why not</h3>\n<table class=\"legend\">\n";
  for (size_t i = 0; i < reasons.size(); ++i)
    out += fmt::format("<tr><td>[{}], {}</td><td>{}</td></tr>\n", i + 1,
                       counted(reasons[i].cells.size(), "cell"), in_html(reasons[i].text));
  return out + "</table>\n";
}

}  // namespace

std::string in_html(std::string_view text) {
  std::string out(text);
  for (size_t at = out.find("+-"); at != std::string::npos; at = out.find("+-", at))
    out.replace(at, 2, "±");
  return html_escaped(out);
}

std::vector<const Cell*> correct_first(std::vector<const Cell*> cells) {
  std::ranges::stable_sort(cells, {}, [](const Cell* cell) {
    return cell->recommended ? 0 : cell->judgement.verdict == Verdict::correct ? 1 : 2;
  });
  return cells;
}

// The list first: the baseline is in it.
std::string cells_html(const Section& section) {
  const std::vector<Reason> reasons = reasons_of(section.cells);
  std::vector<Group> small, square;
  for (Group& group : groups_of(section))
    (is_matrix(group) ? square : small).push_back(std::move(group));
  return list(section, reasons, small) + matrix(section, reasons, square) + reasons_html(reasons);
}

std::string figures_html(const Report& report, const Section& section) {
  std::vector<Field> fields = identity(section);
  for (Field& each : figures(report, section)) fields.push_back(std::move(each));
  std::string out = "<div class=\"wide\"><table class=\"figures\">\n<tr>";
  for (const Field& each : fields) {
    // Titles keep their lines, so that columns are as narrow as their figures.
    std::string title = in_html(each.column.title);
    for (size_t at = title.find('\n'); at != std::string::npos; at = title.find('\n', at))
      title.replace(at, 1, "<br>");
    out += fmt::format("<th>{}</th>", title);
  }
  out += "</tr>\n";
  for (const Cell* cell : correct_first(section.cells)) {
    out += "<tr>";
    for (const Field& each : fields)
      out += fmt::format("<td{}>{}</td>",
                         each.column.align == support::Align::right ? " class=\"right\"" : "",
                         in_html(each.text(*cell)));
    out += "</tr>\n";
  }
  out += "</table></div>\n";
  const std::string common = counted_alike(section);
  return common.empty() ? out
                        : out + "<p class=\"soft\">Equal for all: " + in_html(common) + ".</p>\n";
}

}  // namespace uptempo::fence_scope
