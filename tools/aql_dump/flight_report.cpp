#include "tools/aql_dump/flight_report.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>
#include <string_view>

namespace uptempo::aql_dump {
namespace {

using Json = nlohmann::ordered_json;

// One line of the file, with checked access to its fields.
class Line {
 public:
  Line(const Json& json, size_t number, const std::string& file)
      : json_(json), number_(number), file_(file) {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw std::runtime_error(fmt::format("object {} of '{}' {}", number_, file_, what));
  }
  uint64_t number(const char* name) const {
    const auto it = json_.find(name);
    if (it == json_.end() || !it->is_number_unsigned())
      refuse(fmt::format("has no number '{}'", name));
    return it->get<uint64_t>();
  }
  std::string text(const char* name) const {
    const auto it = json_.find(name);
    if (it == json_.end() || !it->is_string()) refuse(fmt::format("has no text '{}'", name));
    return it->get<std::string>();
  }
  bool flag(const char* name) const {
    const auto it = json_.find(name);
    if (it == json_.end() || !it->is_boolean()) refuse(fmt::format("has no flag '{}'", name));
    return it->get<bool>();
  }
  std::string sizes(const char* name) const {
    const auto it = json_.find(name);
    if (it == json_.end() || !it->is_array() || it->size() != 3)
      refuse(fmt::format("has no three sizes '{}'", name));
    return it->dump();
  }
  bool has(const char* name) const { return json_.contains(name); }

 private:
  const Json& json_;
  const size_t number_;
  const std::string& file_;
};

std::string range_of(uint64_t first, uint64_t count) {
  if (count == 1) return fmt::format("packet {}", first);
  return fmt::format("packets {} to {}", first, first + count - 1);
}

std::string queue_line(const Line& line) {
  // One after the other, so that an error names the first missing field.
  const uint64_t queue = line.number("queue");
  const std::string agent = line.text("agent");
  const uint64_t ring = line.number("ring");
  const uint64_t read_index = line.number("read_index");
  const uint64_t write_index = line.number("write_index");
  const uint64_t submissions = line.number("submissions");
  std::string text = fmt::format(
      "queue {}{}: ring of {} packets, read index {}, write index {}, {} submissions\n", queue,
      agent.empty() ? "" : " of " + agent, ring, read_index, write_index, submissions);
  if (line.has("failure"))
    text += "  failed: " + line.text("failure") + " (" + line.text("status") + ")\n";
  return text;
}

std::string submission_line(const Line& line) {
  std::string text = fmt::format("  submission {}", line.number("submission"));
  if (line.has("file")) {
    text += " at " + line.text("file");
    text += fmt::format(":{}", line.number("line"));
  }
  text += ": " + line.text("state");
  const uint64_t packets = line.number("packets");
  text += fmt::format(", {} packet{}", packets, packets == 1 ? "" : "s");
  if (!line.has("index")) text += ", without slots yet";
  return text + '\n';
}

std::string packets_line(const Line& line, const std::string& type) {
  const uint64_t index = line.number("index");
  const uint64_t packets = line.number("packets");
  std::string text = fmt::format("    {} {}", range_of(index, packets), type);
  if (line.has("barrier")) {
    if (line.flag("barrier")) text += " barrier";
    text += " acquire=" + line.text("acquire");
    text += " release=" + line.text("release");
  }
  if (line.has("kernel")) text += " kernel=" + line.text("kernel");
  if (line.has("kernel_object")) {
    text += " grid=" + line.sizes("grid");
    text += " workgroup=" + line.sizes("workgroup");
    text += fmt::format(" kernarg={:#x}", line.number("kernarg"));
    if (line.flag("completion_signal")) text += " completion_signal";
  }
  return text + '\n';
}

}  // namespace

FlightReport report_flight(const std::vector<Json>& lines, const std::string& name,
                           bool only_unfinished) {
  FlightReport report;
  report.json["lines"] = Json::array();
  bool has_queue = false, is_shown = true;
  for (size_t i = 0; i < lines.size(); ++i) {
    const Line line(lines[i], i + 1, name);
    const std::string type = line.text("type");
    std::string text;
    if (type == "queue") {
      has_queue = is_shown = true;
      text = queue_line(line);
    } else if (!has_queue) {
      line.refuse(fmt::format("is of type '{}'; a flight record begins with a queue", type));
    } else if (type == "submission") {
      const bool is_complete = line.text("state") == "complete";
      report.unfinished += !is_complete;
      is_shown = !(only_unfinished && is_complete);
      text = submission_line(line);
    } else {
      if (!line.has("submission")) is_shown = true;
      text = packets_line(line, type);
    }
    if (!is_shown) continue;
    report.text += text;
    report.json["lines"].push_back(lines[i]);
  }
  if (!has_queue) throw std::runtime_error("'" + name + "' holds no queue; it is no flight record");
  report.text += fmt::format("{} unfinished submissions\n", report.unfinished);
  report.json["unfinished"] = report.unfinished;
  return report;
}

}  // namespace uptempo::aql_dump
