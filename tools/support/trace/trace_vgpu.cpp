#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>

#include <uptempo/aql/text.hpp>
#include "tools/support/json_field.hpp"
#include "tools/support/trace/trace.hpp"

namespace uptempo::support {
namespace {

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

aql::FenceScope scope_of(const JsonField& field) {
  const std::string name = field.text();
  for (const aql::FenceScope scope :
       {aql::FenceScope::none, aql::FenceScope::agent, aql::FenceScope::system})
    if (aql::scope_name(scope) == name) return scope;
  field.refuse_for("none, agent or system");
}

// The interval of a packet or copy, and the fields that it has no member for.
template <class What>
void read_rest(What& what, const JsonField& line, const std::set<std::string>& known) {
  for (const auto& [name, field] : line.fields())
    if (!known.contains(name)) what.details[name] = field.json();
  what.begin_ns = line["start_ns"].whole<uint64_t>();
  what.end_ns = line["end_ns"].whole<uint64_t>();
  if (what.end_ns < what.begin_ns) line.refuse("it ends before it begins");
}

TraceRun::Packet packet_of(const JsonField& line) {
  TraceRun::Packet packet{
      .index = line["index"].whole<uint64_t>(),
      .name = line["type"].text(),
      .type = line["type"].text(),
      .flags = aql::HeaderFlags{line["barrier"].flag() ? aql::Barrier::on : aql::Barrier::off,
                                scope_of(line["acquire"]), scope_of(line["release"])}};
  read_rest(
      packet, line,
      {"queue", "gpu", "index", "type", "barrier", "acquire", "release", "start_ns", "end_ns"});
  if (const auto kernel = line.find("kernel")) {
    packet.name = kernel->text();
    if (packet.name.ends_with(".kd")) packet.name.resize(packet.name.size() - 3);
  }
  return packet;
}

TraceRun::Copy copy_of(const JsonField& line) {
  const auto address_of = [&](const char* name) {
    const std::optional<JsonField> field = line.find(name);
    return field ? std::optional(field->whole<uint64_t>()) : std::nullopt;
  };
  TraceRun::Copy copy{.engine = line["queue"].whole<uint32_t>(),
                      .name = line["engine"].text(),
                      .bytes = line["bytes"].whole<uint64_t>(),
                      .from = address_of("from"),
                      .to = address_of("to")};
  read_rest(copy, line, {"queue", "gpu", "type", "engine", "bytes", "start_ns", "end_ns"});
  return copy;
}

class VgpuTrace {
 public:
  explicit VgpuTrace(std::optional<uint64_t> queue) : wanted_(queue) {
    run_.is_virtual = true;
    run_.device = "virtual GPU";
  }

  void add(const JsonField& line) {
    const std::string type = line["type"].text();
    TraceRun::Queue name = line["queue"].whole<uint32_t>();
    if (wanted_ && name.number != *wanted_) return;
    if (const auto gpu = line.find("gpu")) name.gpu = gpu->whole<uint32_t>();
    if (type == "sdma") {
      TraceRun::Copy& copy = run_.copies.emplace_back(copy_of(line));
      copy.gpu = name.gpu;
      return;
    }
    name.process = processes_[name];
    if (type == "doorbell") {
      const auto value = line["value"].whole<int64_t>();
      const auto ns = line["ns"].whole<uint64_t>();
      run_.doorbells.push_back({name, ns, value});
      Queue& queue = queues_[name];
      if (value < 0) return;  // a doorbell for no packet
      queue.doorbells.emplace_back(static_cast<uint64_t>(value), ns);
      queue.events.push_back({ns, static_cast<uint64_t>(value) + 1, 0});
      return;
    }
    TraceRun::Packet packet = packet_of(line);
    if (queues_[name].packets.contains(packet.index)) {
      TraceRun::Queue first = name;
      first.process = 0;
      if (packet.index != 0) mixed_.insert(first);
      name.process = ++processes_[first];
    }
    packet.queue = name;
    Queue& queue = queues_[name];
    queue.packets[packet.index] = run_.packets.size();
    queue.events.push_back({packet.begin_ns, packet.index + 1, packet.index + 1});
    run_.packets.push_back(std::move(packet));
  }

  TraceRun finish() {
    find_overlaps();
    for (auto& [name, queue] : queues_) {
      submit(queue);
      sample(name, queue);
    }
    add_queue_order(run_);
    return std::move(run_);
  }

 private:
  // Processes that used a queue's number at the same time may have written in turns.
  void find_overlaps() {
    std::map<TraceRun::Queue, uint64_t> ends;
    for (const auto& [name, queue] : queues_) {
      TraceRun::Queue first = name;
      first.process = 0;
      uint64_t& end = ends[first];
      const uint64_t before = end;
      for (const auto& [index, place] : queue.packets) {
        if (run_.packets[place].begin_ns < before) mixed_.insert(first);
        end = std::max(end, run_.packets[place].end_ns);
      }
    }
    for (const auto& [name, queue] : queues_) {
      TraceRun::Queue first = name;
      first.process = 0;
      if (mixed_.contains(first)) run_.mixed.insert(name);
    }
  }

  // A packet's submission is the first doorbell that covers it. The packet processor may have seen
  // it earlier, by an earlier doorbell.
  void submit(const Queue& queue) {
    for (const auto& [index, place] : queue.packets) {
      TraceRun::Packet& packet = run_.packets[place];
      const auto bell = std::ranges::find_if(
          queue.doorbells, [index = index](const auto& each) { return each.first >= index; });
      if (bell != queue.doorbells.end()) packet.submit_ns = std::min(bell->second, packet.begin_ns);
    }
  }

  void sample(const TraceRun::Queue& name, Queue& queue) {
    std::ranges::stable_sort(queue.events, {}, &IndexEvent::ns);
    uint64_t write = 0, read = 0;
    // Packets before the first line are unknown and treated as complete.
    if (!queue.packets.empty()) write = read = queue.packets.begin()->first;
    for (const IndexEvent& event : queue.events) {
      read = std::max(read, event.read_index);
      write = std::max({write, event.write_index, read});
      run_.ring.push_back({name, event.ns, write, read});
    }
  }

  const std::optional<uint64_t> wanted_;
  TraceRun run_;
  std::map<TraceRun::Queue, Queue> queues_;
  std::map<TraceRun::Queue, uint32_t> processes_;  // by queue of the first process: the last one
  std::set<TraceRun::Queue> mixed_;                // of the first process
};

}  // namespace

TraceRun trace_of_vgpu(std::string_view lines, const std::string& file,
                       std::optional<uint64_t> queue) {
  VgpuTrace trace(queue);
  for (size_t number = 1; !lines.empty(); ++number) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    try {
      const nlohmann::ordered_json value = parse_json(line);
      trace.add(JsonField(value));
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format(
          "{}: line {} is not a line of the virtual GPU's trace: {}", file, number, error.what()));
    }
  }
  return trace.finish();
}

}  // namespace uptempo::support
