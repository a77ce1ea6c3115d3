#include "tools/litmus/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "tools/support/table.hpp"

namespace uptempo::litmus {

Counter::Counter(const Test& test) : expected_(sequential_outcome(test)) {
  if (expected_.empty())
    throw std::invalid_argument("the litmus test " + test.name + " loads nothing");
  std::set<uint32_t> values, added;
  bool any = false;
  for (const Cell& cell : test.cells) {
    values.insert(cell.initial);
    any |= cell.unsorted;
  }
  for (const Step& step : test.steps) {
    if (step.kind == Step::Kind::host_load) names_.push_back(test.cells[step.from].name);
    if (step.kind == Step::Kind::host_store) values.insert(step.value);
    if (step.kind != Step::Kind::dispatch) continue;
    if (step.kernel == Step::Kernel::store) values.insert(step.value);
    if (step.kernel == Step::Kernel::add) added.insert(step.value);
  }
  for (const uint32_t addend : added) {
    const std::set<uint32_t> before = values;
    for (const uint32_t value : before) values.insert(value + addend);
  }
  if (!any) values_.assign(values.begin(), values.end());
}

void Counter::add(const std::vector<std::vector<uint32_t>>& outcome) {
  for (size_t word = 0; word < outcome.front().size(); ++word) {
    Outcome text;
    bool sequential = true, known = true;
    for (size_t load = 0; load < expected_.size(); ++load) {
      const uint32_t value = outcome[load][word];
      text += fmt::format("{}{}={}", load == 0 ? "" : " ", names_[load], value);
      sequential &= value == expected_[load][word];
      known &= values_.empty() || std::ranges::binary_search(values_, value);
    }
    Entry& entry = entries_[text];
    ++entry.count;
    entry.sequential = sequential;
    entry.out_of_thin_air = !known;
  }
}

uint64_t Counter::others() const noexcept {
  uint64_t count = 0;
  for (const auto& [outcome, entry] : entries_)
    if (!entry.sequential) count += entry.count;
  return count;
}

bool is_forbidden(const Counter::Entry& entry, Verdict verdict, bool known_target) noexcept {
  if (entry.sequential) return false;
  return entry.out_of_thin_air || verdict == Verdict::correct ||
         (known_target && verdict == Verdict::harmless);
}

bool Report::passed() const noexcept {
  return std::ranges::none_of(results, [this](const Result& result) {
    return std::ranges::any_of(result.outcomes, [&](const auto& outcome) {
      return is_forbidden(outcome.second, result.verdict, known_target());
    });
  });
}

std::string table(const Report& report) {
  struct Row {
    uint64_t tests = 0, correct = 0, harmless = 0, racy = 0, others = 0, forbidden = 0;
  };
  std::vector<std::pair<std::string, Row>> rows;
  std::string lines;
  for (const Result& result : report.results) {
    const std::string shape = result.name.substr(0, result.name.find('/'));
    if (rows.empty() || rows.back().first != shape) rows.push_back({shape, {}});
    Row& row = rows.back().second;
    ++row.tests;
    ++(result.verdict == Verdict::correct    ? row.correct
       : result.verdict == Verdict::harmless ? row.harmless
                                             : row.racy);
    for (const auto& [outcome, entry] : result.outcomes) {
      if (entry.sequential) continue;
      row.others += entry.count;
      if (!is_forbidden(entry, result.verdict, report.known_target())) continue;
      row.forbidden += entry.count;
      lines += fmt::format("FORBIDDEN  {}  {}  {} times\n", result.name, outcome, entry.count);
    }
  }
  using support::Align;
  support::Table text({{"\nshape", Align::left},
                       {"\ntests"},
                       {"sequen-\ntial"},
                       {"by target\nonly"},
                       {"\nothers"},
                       {"\nforbidden"}});
  for (const auto& [shape, row] : rows)
    text.add_row({shape, std::to_string(row.tests), std::to_string(row.correct),
                  std::to_string(row.harmless), std::to_string(row.others),
                  std::to_string(row.forbidden)});
  return fmt::format(
      "{} tests, {} iteration{} of {} words{}\n\n{}\n{}{}", report.results.size(),
      report.iterations, report.iterations == 1 ? "" : "s", kCellWords,
      report.known_target()
          ? ""
          : fmt::format("; the caches of {} are unknown: only the specification's rules apply",
                        report.target),
      text.text(), lines.empty() ? "No forbidden outcome.\n" : lines,
      report.interrupted ? "Interrupted: the report holds what was measured before.\n" : "");
}

nlohmann::ordered_json json(const Report& report) {
  const support::Software& software = report.software;
  nlohmann::ordered_json out{{"format", "uptempo-litmus-1"},
                             {"device", report.device},
                             {"target", report.target},
                             {"virtual_gpu", report.is_virtual},
                             {"hsa_version", software.hsa_version}};
  const auto add_known = [&out](const char* name, const std::string& value) {
    if (!value.empty()) out[name] = value;
  };
  add_known("rocr_build", software.rocr_build);
  add_known("rocr_library", software.rocr_library);
  add_known("driver", software.driver);
  add_known("kernel", software.kernel);
  out["iterations"] = report.iterations;
  out["words"] = kCellWords;
  out["target_rules"] = report.known_target();
  out["passed"] = report.passed();
  out["interrupted"] = report.interrupted;
  out["tests"] = nlohmann::ordered_json::array();
  for (const Result& result : report.results) {
    const bool sequential_on_target = report.known_target() ? result.verdict != Verdict::possible
                                                            : result.verdict == Verdict::correct;
    nlohmann::ordered_json test{
        {"name", result.name},
        {"specification", result.verdict == Verdict::correct ? "sequential" : "any"},
        {"target", sequential_on_target ? "sequential" : "any"},
        {"outcomes", nlohmann::ordered_json::array()}};
    for (const auto& [outcome, entry] : result.outcomes)
      test["outcomes"].push_back(
          {{"values", outcome},
           {"count", entry.count},
           {"sequential", entry.sequential},
           {"forbidden", is_forbidden(entry, result.verdict, report.known_target())}});
    out["tests"].push_back(std::move(test));
  }
  return out;
}

}  // namespace uptempo::litmus
