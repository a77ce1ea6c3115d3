#include "tools/aql_dump/flight_report.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "tools/support/json_field.hpp"

namespace uptempo::aql_dump {
namespace {

using Json = nlohmann::ordered_json;
using support::JsonField;

uint64_t number(const JsonField& line, const char* name) { return line[name].whole<uint64_t>(); }

std::string sizes(const JsonField& line, const char* name) {
  const JsonField field = line[name];
  if (field.elements().size() != 3) field.refuse_for("three sizes");
  return field.json().dump();
}

bool has(const JsonField& line, const char* name) { return line.find(name).has_value(); }

std::string range_of(uint64_t first, uint64_t count) {
  if (count == 1) return fmt::format("packet {}", first);
  return fmt::format("packets {} to {}", first, first + count - 1);
}

std::string queue_line(const JsonField& line) {
  // One after the other, so that an error names the first missing field.
  const uint64_t queue = number(line, "queue");
  const std::string agent = line["agent"].text();
  const uint64_t ring = number(line, "ring");
  const uint64_t read_index = number(line, "read_index");
  const uint64_t write_index = number(line, "write_index");
  const uint64_t submissions = number(line, "submissions");
  std::string text = fmt::format(
      "queue {}{}: ring of {} packets, read index {}, write index {}, {} submissions\n", queue,
      agent.empty() ? "" : " of " + agent, ring, read_index, write_index, submissions);
  if (has(line, "failure"))
    text += "  failed: " + line["failure"].text() + " (" + line["status"].text() + ")\n";
  return text;
}

std::string submission_line(const JsonField& line) {
  std::string text = fmt::format("  submission {}", number(line, "submission"));
  if (has(line, "file")) {
    text += " at " + line["file"].text();
    text += fmt::format(":{}", number(line, "line"));
  }
  text += ": " + line["state"].text();
  const uint64_t packets = number(line, "packets");
  text += fmt::format(", {} packet{}", packets, packets == 1 ? "" : "s");
  if (!has(line, "index")) text += ", without slots yet";
  return text + '\n';
}

std::string packets_line(const JsonField& line, const std::string& type) {
  const uint64_t index = number(line, "index");
  const uint64_t packets = number(line, "packets");
  std::string text = fmt::format("    {} {}", range_of(index, packets), type);
  if (has(line, "barrier")) {
    if (line["barrier"].flag()) text += " barrier";
    text += " acquire=" + line["acquire"].text();
    text += " release=" + line["release"].text();
  }
  if (has(line, "kernel")) text += " kernel=" + line["kernel"].text();
  if (has(line, "kernel_object")) {
    text += " grid=" + sizes(line, "grid");
    text += " workgroup=" + sizes(line, "workgroup");
    text += fmt::format(" kernarg={:#x}", number(line, "kernarg"));
    if (line["completion_signal"].flag()) text += " completion_signal";
  }
  return text + '\n';
}

}  // namespace

FlightReport report_flight(const std::vector<Json>& lines, const std::string& name,
                           bool only_unfinished) {
  FlightReport report;
  report.json["lines"] = Json::array();
  bool has_queue = false, is_shown = true;
  // The text of a line; updates the state.
  const auto text_of = [&](const JsonField& line) {
    const std::string type = line["type"].text();
    if (type == "queue") {
      has_queue = is_shown = true;
      return queue_line(line);
    }
    if (!has_queue)
      line.refuse(fmt::format("its type is '{}'; a flight record begins with a queue", type));
    if (type == "submission") {
      const bool is_complete = line["state"].text() == "complete";
      report.unfinished += !is_complete;
      is_shown = !(only_unfinished && is_complete);
      return submission_line(line);
    }
    if (!has(line, "submission")) is_shown = true;
    return packets_line(line, type);
  };
  for (const Json& json : lines) {
    try {
      const std::string text = text_of(JsonField(json));
      if (!is_shown) continue;
      report.text += text;
      report.json["lines"].push_back(json);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(
          fmt::format("object {} of '{}': {}", &json - lines.data() + 1, name, error.what()));
    }
  }
  if (!has_queue) throw std::runtime_error("'" + name + "' holds no queue; it is no flight record");
  report.text += fmt::format("{} unfinished submissions\n", report.unfinished);
  report.json["unfinished"] = report.unfinished;
  return report;
}

}  // namespace uptempo::aql_dump
