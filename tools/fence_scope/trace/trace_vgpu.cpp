#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/fence_scope/report/report_words.hpp"
#include "tools/fence_scope/trace/trace.hpp"
#include "tools/support/json_depth.hpp"
#include "tools/support/json_whole.hpp"
#include "tools/support/program.hpp"

namespace uptempo::fence_scope {
namespace {

using nlohmann::json;
using support::whole;

// A change of a queue's indices, and its time.
struct IndexEvent {
  uint64_t ns;
  uint64_t write_index, read_index;  // 0: this event does not give it
};

struct Queue {
  std::map<uint64_t, size_t> packets{};  // by index: position in TraceRun::packets
  // last index and time, in recording order
  std::vector<std::pair<uint64_t, uint64_t>> doorbells{};
  std::vector<IndexEvent> events{};
};

aql::FenceScope scope_of(const json& line, const char* field) {
  const auto scope = named<aql::FenceScope>(line.at(field).get<std::string>());
  if (!scope) throw std::runtime_error(fmt::format("unknown scope {}", line.at(field).dump()));
  return *scope;
}

TraceRun::Packet packet_of(const json& line) {
  TraceRun::Packet packet{
      .queue = whole<uint32_t>(line.at("queue")),
      .index = whole<uint64_t>(line.at("index")),
      .name = line.at("type"),
      .type = line.at("type"),
      .flags =
          aql::HeaderFlags{line.at("barrier").get<bool>() ? aql::Barrier::on : aql::Barrier::off,
                           scope_of(line, "acquire"), scope_of(line, "release")},
      .begin_ns = whole<uint64_t>(line.at("start_ns")),
      .end_ns = whole<uint64_t>(line.at("end_ns"))};
  if (line.contains("kernel")) {
    packet.name = line.at("kernel");
    if (packet.name.ends_with(".kd")) packet.name.resize(packet.name.size() - 3);
  }
  if (packet.end_ns < packet.begin_ns) throw std::runtime_error("it ends before it begins");
  return packet;
}

std::optional<uint64_t> address_of(const json& line, const char* field) {
  return line.contains(field) ? std::optional(whole<uint64_t>(line.at(field))) : std::nullopt;
}

TraceRun::Copy copy_of(const json& line) {
  const auto engine = line.at("engine").get<std::string>();
  TraceRun::Copy copy{.engine = whole<uint32_t>(line.at("queue")),
                      .name = engine,
                      .bytes = whole<uint64_t>(line.at("bytes")),
                      .from = address_of(line, "from"),
                      .to = address_of(line, "to"),
                      .begin_ns = whole<uint64_t>(line.at("start_ns")),
                      .end_ns = whole<uint64_t>(line.at("end_ns"))};
  if (copy.end_ns < copy.begin_ns) throw std::runtime_error("it ends before it begins");
  return copy;
}

// A packet's submission is the first doorbell that covers it. The packet processor may have seen it
// earlier, by an earlier doorbell.
void submit(TraceRun& run, const Queue& queue) {
  for (const auto& [index, place] : queue.packets) {
    TraceRun::Packet& packet = run.packets[place];
    const auto bell = std::ranges::find_if(
        queue.doorbells, [index = index](const auto& each) { return each.first >= index; });
    if (bell != queue.doorbells.end()) packet.submit_ns = std::min(bell->second, packet.begin_ns);
  }
}

void sample(TraceRun& run, uint32_t number, Queue& queue) {
  std::ranges::stable_sort(queue.events, {}, &IndexEvent::ns);
  uint64_t write = 0, read = 0;
  // Packets before the first line are unknown and treated as complete.
  if (!queue.packets.empty()) write = read = queue.packets.begin()->first;
  for (const IndexEvent& event : queue.events) {
    read = std::max(read, event.read_index);
    write = std::max({write, event.write_index, read});
    run.ring.push_back({number, event.ns, write, read});
  }
}

}  // namespace

TraceRun trace_of_vgpu(std::string_view lines, const std::string& file) {
  TraceRun run;
  run.is_virtual = true;
  run.device = "virtual GPU";
  std::map<uint32_t, Queue> queues;
  size_t number = 0;
  while (!lines.empty()) {
    ++number;
    const size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view text = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (text.empty()) continue;
    try {
      const json line = support::parse_shallow_json<json>(text);
      const auto type = line.at("type").get<std::string>();
      if (type == "doorbell") {
        const auto value = whole<int64_t>(line.at("value"));
        const auto ns = whole<uint64_t>(line.at("ns"));
        if (value < 0) continue;  // a doorbell for no packet
        Queue& queue = queues[whole<uint32_t>(line.at("queue"))];
        queue.doorbells.emplace_back(static_cast<uint64_t>(value), ns);
        queue.events.push_back({ns, static_cast<uint64_t>(value) + 1, 0});
      } else if (type == "sdma") {
        // Fences, polls and timestamps move no bytes.
        if (line.at("engine").get<std::string>().starts_with("copy"))
          run.copies.push_back(copy_of(line));
      } else if (line.contains("start_ns") && line.contains("index")) {
        run.packets.push_back(packet_of(line));
        const TraceRun::Packet& packet = run.packets.back();
        Queue& queue = queues[packet.queue];
        if (!queue.packets.emplace(packet.index, run.packets.size() - 1).second)
          throw std::runtime_error(
              fmt::format("packet {} of queue {} occurs twice", packet.index, packet.queue));
        queue.events.push_back({packet.begin_ns, packet.index + 1, packet.index + 1});
      }
    } catch (const std::exception& error) {
      throw support::UsageError(fmt::format(
          "{}: line {} is not a line of the virtual GPU's trace: {}", file, number, error.what()));
    }
  }
  for (auto& [queue_number, queue] : queues) {
    submit(run, queue);
    sample(run, queue_number, queue);
  }
  add_queue_order(run);
  return run;
}

}  // namespace uptempo::fence_scope
