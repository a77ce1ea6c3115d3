// Reports of a flight record: the file of Queue::save_report() and Streams::save_report().
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace uptempo::aql_dump {

struct FlightReport {
  std::string text;
  nlohmann::ordered_json json;
  size_t unfinished = 0;  // submissions
};
// `lines`: what input.hpp has read from `name`. With `only_unfinished`, leaves complete submissions
// out. Throws std::runtime_error that names the line and the field for lines that are none of a
// flight record.
FlightReport report_flight(const std::vector<nlohmann::ordered_json>& lines,
                           const std::string& name, bool only_unfinished);

}  // namespace uptempo::aql_dump
