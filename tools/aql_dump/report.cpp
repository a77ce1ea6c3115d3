#include "tools/aql_dump/report.hpp"

#include <fmt/format.h>

#include <map>

#include <uptempo/aql/text.hpp>

namespace uptempo::aql_dump {
namespace {

using Json = nlohmann::ordered_json;

// A field of a trace line as text, strings without quotes; empty if the line lacks it.
std::string field(const Json& event, const char* name) {
  const auto it = event.find(name);
  if (it == event.end()) return {};
  return it->is_string() ? it->get<std::string>() : it->dump();
}

bool flag(const Json& event, const char* name) {
  const auto it = event.find(name);
  return it != event.end() && it->is_boolean() && it->get<bool>();
}

// Nanoseconds between an event's start and end; empty without both.
std::string duration(const Json& event) {
  const auto start = event.find("start_ns");
  const auto end = event.find("end_ns");
  if (start == event.end() || end == event.end() || !start->is_number_unsigned() ||
      !end->is_number_unsigned())
    return {};
  const auto from = start->get<uint64_t>(), to = end->get<uint64_t>();
  return from <= to ? fmt::format(" ({} ns)", to - from) : fmt::format(" (-{} ns)", from - to);
}

std::string event_line(const Json& event) {
  const std::string type = field(event, "type");
  std::string line = "queue " + field(event, "queue");
  if (type == "doorbell") return line + " doorbell " + field(event, "value");
  if (type == "sdma") {
    return fmt::format("{} sdma {} offset={} bytes={}{}", line, field(event, "engine"),
                       field(event, "offset"), field(event, "bytes"), duration(event));
  }
  line += fmt::format(" packet {} {}{} acquire={} release={}", field(event, "index"), type,
                      flag(event, "barrier") ? " barrier" : "", field(event, "acquire"),
                      field(event, "release"));
  for (const char* name : {"kernel", "grid", "workgroup"}) {
    if (event.contains(name)) line += fmt::format(" {}={}", name, field(event, name));
  }
  if (event.contains("kernarg") && event["kernarg"].is_number_unsigned()) {
    line += fmt::format(" kernarg={:#x}", event["kernarg"].get<uint64_t>());
  }
  if (flag(event, "completion_signal")) line += " completion_signal";
  return line + duration(event);
}

// Counts of a queue's packets and events.
struct Summary {
  uint64_t doorbells = 0;
  uint64_t barriers = 0;
  uint64_t completion_signals = 0;
  std::map<std::string, uint64_t> packets;   // by type, or by SDMA engine
  std::map<std::string, uint64_t> acquires;  // by scope
  std::map<std::string, uint64_t> releases;

  void add(const Json& event) {
    const std::string type = field(event, "type");
    if (type == "doorbell") {
      ++doorbells;
    } else if (type == "sdma") {
      ++packets["sdma " + field(event, "engine")];
    } else {
      ++packets[type];
      ++acquires[field(event, "acquire")];
      ++releases[field(event, "release")];
      if (flag(event, "barrier")) ++barriers;
      if (flag(event, "completion_signal")) ++completion_signals;
    }
  }

  static std::string counts(const std::map<std::string, uint64_t>& by_name) {
    std::string text;
    for (const auto& [name, count] : by_name)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
    return text;
  }

  std::string text() const {
    std::string out = counts(packets);
    out += fmt::format("{}{} doorbells", out.empty() ? "" : "; ", doorbells);
    if (acquires.empty()) return out;
    return out + fmt::format("; barrier bit on {}; acquire {}; release {}; completion signal on {}",
                             barriers, counts(acquires), counts(releases), completion_signals);
  }

  Json json() const {
    return {{"packets", packets},   {"doorbells", doorbells},
            {"barriers", barriers}, {"acquires", acquires},
            {"releases", releases}, {"completion_signals", completion_signals}};
  }
};

Json packet_json(const aql::Packet64& packet, uint64_t index) {
  const aql::HeaderFlags flags = aql::header_flags(packet.header());
  Json json{{"index", index}, {"type", aql::kind_name(packet)}, {"text", aql::format(packet)}};
  if (aql::packet_type(packet.header()) != aql::PacketType::invalid) {
    json["barrier"] = flags.barrier == aql::Barrier::on;
    json["acquire"] = aql::scope_name(flags.acquire);
    json["release"] = aql::scope_name(flags.release);
  }
  const aql::AnyPacket any = aql::decode(packet);
  if (const auto* d = std::get_if<aql::KernelDispatch>(&any)) {
    json["grid"] = {d->grid.x, d->grid.y, d->grid.z};
    json["workgroup"] = {d->workgroup.x, d->workgroup.y, d->workgroup.z};
    json["kernel_object"] = d->kernel_object;
    json["kernarg"] = reinterpret_cast<uint64_t>(d->kernarg_address);
    json["private_segment_size"] = d->private_segment_size;
    json["group_segment_size"] = d->group_segment_size;
  }
  json["words"] = packet.word;
  Json findings = Json::array();
  for (const aql::Finding& f : aql::lint(packet))
    findings.push_back({{"field", f.field}, {"text", f.text}});
  json["findings"] = std::move(findings);
  return json;
}

}  // namespace

PacketReport report_packets(const std::vector<aql::Packet64>& packets, uint64_t first,
                            bool skip_invalid, bool words) {
  PacketReport report;
  report.json["packets"] = Json::array();
  size_t shown = 0;
  for (size_t i = 0; i < packets.size(); ++i) {
    const aql::Packet64& packet = packets[i];
    if (skip_invalid && aql::packet_type(packet.header()) == aql::PacketType::invalid) continue;
    ++shown;
    report.text += fmt::format("{:>6}  {}\n", first + i, aql::format(packet));
    if (words) {
      const std::string text = aql::format_words(packet);
      const size_t half = text.find('\n');
      report.text +=
          fmt::format("        {}\n        {}\n", text.substr(0, half), text.substr(half + 1));
    }
    for (const aql::Finding& f : aql::lint(packet)) {
      ++report.findings;
      report.text += fmt::format("        {}: {}\n", f.field, f.text);
    }
    report.json["packets"].push_back(packet_json(packet, first + i));
  }
  report.text += fmt::format("{} packets, {} findings\n", shown, report.findings);
  report.json["findings"] = report.findings;
  return report;
}

TraceReport report_trace(const std::vector<Json>& events, int64_t queue, bool summary_only) {
  TraceReport report;
  report.json["events"] = Json::array();
  report.json["queues"] = Json::object();
  std::map<int64_t, Summary> summaries;
  for (const Json& event : events) {
    const auto it = event.find("queue");
    const int64_t of = it != event.end() && it->is_number_integer() ? it->get<int64_t>() : -1;
    if (queue >= 0 && of != queue) continue;
    summaries[of].add(event);
    if (summary_only) continue;
    report.text += event_line(event) + '\n';
    report.json["events"].push_back(event);
  }
  for (const auto& [of, summary] : summaries) {
    report.text += fmt::format("total queue {}: {}\n", of, summary.text());
    report.json["queues"][std::to_string(of)] = summary.json();
  }
  return report;
}

}  // namespace uptempo::aql_dump
