#include "tools/fence_scope/report/report_csv.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include <uptempo/aql/printable.hpp>
#include "tools/fence_scope/report/report_json.hpp"

namespace uptempo::fence_scope {
namespace {

using nlohmann::ordered_json;

// A field's name, and the place of its value in the JSON of a record.
struct Column {
  std::string name;
  ordered_json::json_pointer place;
};

// Columns for all values of `record`. Names of parts are prefixes of their fields' names.
void add_columns(std::vector<Column>& columns, const ordered_json& record,
                 const ordered_json::json_pointer& place = ordered_json::json_pointer(),
                 const std::string& prefix = {}, const std::string& suffix = {}) {
  static const std::map<std::string, std::string> kPrefixes{{"gated", "gated_"},
                                                            {"ungated", "ungated_"},
                                                            {"device", "device_time_"},
                                                            {"model", "model_"},
                                                            {"checker", "checker_"}};
  for (const auto& [name, value] : record.items()) {
    if (value.is_object()) {
      const auto known = kPrefixes.find(name);
      add_columns(columns, value, place / name, known == kPrefixes.end() ? "" : known->second,
                  name == "because" ? "_because" : "");
    } else if (name == "samples_us") {
      columns.push_back({prefix + "samples", place / name});
    } else if (!value.is_array()) {
      columns.push_back({prefix + name + suffix, place / name});
    }
  }
}

// RFC 4180, 2.5 to 2.7: fields with line breaks, quotes or commas are quoted, and quotes doubled.
std::string quoted(std::string_view text) {
  const std::string field = aql::printable(text, aql::Lines::kept);
  if (field.find_first_of("\",\r\n") == std::string::npos) return field;
  std::string out = "\"";
  for (const char c : field) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + '"';
}

// Empty for an unknown value. The samples are counted.
std::string text_of(const ordered_json& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) return std::to_string(value.size());
  // The shortest text that reads back as the same value.
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  return value.dump();
}

// The records of a report: each cell, or each packet if it has any.
std::vector<ordered_json> records_of(const Report& report) {
  ordered_json all = json(report);
  ordered_json run;
  const bool has_packets = !report.packets.empty();
  for (const char* name : {"experiment", "device", "target"}) run[name] = all[name];
  if (has_packets)
    run["workload"] = report.cells.empty() ? "" : report.cells.front().workload;
  else
    for (const char* name : {"time_kind", "timing", "seed"}) run[name] = all[name];
  std::vector<ordered_json> records;
  for (ordered_json& each : all[has_packets ? "packets" : "cells"])
    records.push_back({{"run", run}, {"record", std::move(each)}});
  return records;
}

std::vector<Column> columns_of(const Report& report) {
  Report example;  // has every part that a record can lack
  example.steps = {""};
  if (report.packets.empty())
    example.cells = {{.device = Times{}, .model = ModelTime{}}};
  else
    example.packets = {{.checker = aql::HeaderFlags{}}};
  std::vector<Column> columns;
  add_columns(columns, records_of(example).front());
  return columns;
}

}  // namespace

std::string csv(const Report& report) {
  const std::vector<Column> columns = columns_of(report);
  std::string text;
  const auto add = [&](const Column& column, std::string_view field) {
    text += (&column == &columns.front() ? "" : ",") + quoted(field);
  };
  for (const Column& column : columns) add(column, column.name);
  text += "\r\n";
  for (const ordered_json& record : records_of(report)) {
    for (const Column& column : columns)
      add(column, record.contains(column.place) ? text_of(record[column.place]) : "");
    text += "\r\n";
  }
  return text;
}

}  // namespace uptempo::fence_scope
