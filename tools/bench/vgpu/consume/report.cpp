#include "tools/bench/vgpu/consume/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tools/support/table.hpp"

namespace uptempo::vgpu::consume {
namespace {

std::string number(double value) {
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

std::string limit_text(const Bar& bar) {
  return fmt::format("{} {}{}", bar.at_least ? ">=" : "<=", number(bar.limit),
                     bar.of_ratio ? "x" : "");
}

}  // namespace

void Rows::declare(std::string_view name, std::string_view unit, std::string_view floor) {
  if (!floor.empty()) at(floor);
  rows_.push_back({name, unit, floor, {}});
}

const Row& Rows::at(std::string_view name) const {
  const auto row = std::ranges::find(rows_, name, &Row::name);
  if (row == rows_.end()) throw std::invalid_argument("the report has no row " + std::string(name));
  return *row;
}

void Rows::add(std::string_view name, double value) {
  const_cast<Row&>(at(name)).values.push_back(value);
}

support::MedianInterval Rows::figure(std::string_view name) const {
  return support::median_interval(at(name).values);
}

std::optional<support::MedianInterval> Rows::ratio_to_floor(std::string_view name) const {
  const Row& row = at(name);
  if (row.floor.empty()) return std::nullopt;
  return support::median_ratio(row.values, at(row.floor).values);
}

std::vector<Judged> judge(const Rows& rows, const std::vector<Bar>& bars) {
  std::vector<Judged> judged;
  for (const Bar& bar : bars) {
    const support::MedianInterval figure =
        bar.of_ratio ? rows.ratio_to_floor(bar.row).value() : rows.figure(bar.row);
    const double value = bar.at_least ? figure.low : figure.high;
    judged.push_back({bar, value, bar.at_least ? value >= bar.limit : value <= bar.limit});
  }
  return judged;
}

std::string table(const Rows& rows, const std::vector<Judged>& bars) {
  using support::Align;
  support::Table text({{"row", Align::left},
                       {"unit", Align::left},
                       {"median"},
                       {"95 % interval"},
                       {"ratio"},
                       {"to", Align::left},
                       {"bar", Align::left},
                       {"", Align::left}});
  for (const Row& row : rows.all()) {
    if (row.values.empty()) continue;
    const support::MedianInterval figure = rows.figure(row.name);
    const auto ratio = rows.ratio_to_floor(row.name);
    std::string bar, verdict;
    for (const Judged& judged : bars) {
      if (judged.bar.row != row.name) continue;
      bar += (bar.empty() ? "" : ", ") + limit_text(judged.bar);
      if (verdict != "missed") verdict = judged.met ? "met" : "missed";
    }
    text.add_row({std::string(row.name), std::string(row.unit), number(figure.median),
                  fmt::format("{} - {}", number(figure.low), number(figure.high)),
                  ratio ? fmt::format("{:.2f}x", ratio->median) : "", std::string(row.floor), bar,
                  verdict});
  }
  return text.text();
}

nlohmann::json json(const Conditions& conditions, const Rows& rows,
                    const std::vector<Judged>& bars) {
  nlohmann::json out{{"device", conditions.device},
                     {"virtual_gpu", true},
                     {"null_kernels", true},
                     {"rounds", conditions.rounds},
                     {"seed", conditions.seed},
                     {"host_core", conditions.host_core},
                     {"device_core", conditions.device_core},
                     {"results", nlohmann::json::array()},
                     {"bars", nlohmann::json::array()}};
  const auto interval = [](const support::MedianInterval& figure) {
    return nlohmann::json{{"median", figure.median}, {"low", figure.low}, {"high", figure.high}};
  };
  for (const Row& row : rows.all()) {
    if (row.values.empty()) continue;
    nlohmann::json result = interval(rows.figure(row.name));
    result["name"] = row.name;
    result["unit"] = row.unit;
    if (const auto ratio = rows.ratio_to_floor(row.name)) {
      result["floor"] = row.floor;
      result["ratio"] = interval(*ratio);
    }
    out["results"].push_back(std::move(result));
  }
  for (const Judged& judged : bars)
    out["bars"].push_back({{"name", judged.bar.row},
                           {"of", judged.bar.of_ratio ? "ratio" : "figure"},
                           {judged.bar.at_least ? "at_least" : "at_most", judged.bar.limit},
                           {"value", judged.value},
                           {"met", judged.met}});
  return out;
}

}  // namespace uptempo::vgpu::consume
