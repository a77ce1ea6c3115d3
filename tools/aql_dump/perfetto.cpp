#include "tools/aql_dump/perfetto.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

namespace uptempo::aql_dump {
namespace {

using Json = nlohmann::ordered_json;

// One line of the trace, with checked access to its fields.
class TraceLine {
 public:
  TraceLine(const Json& json, size_t number) : json_(json), number_(number) {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw std::runtime_error(fmt::format("event {} of the trace {}", number_, what));
  }
  bool has(const char* name) const { return json_.contains(name); }
  uint64_t number(const char* name) const {
    const auto it = json_.find(name);
    if (it == json_.end() || !it->is_number_unsigned())
      refuse(fmt::format("has no number '{}'", name));
    return it->get<uint64_t>();
  }
  uint32_t small_number(const char* name) const {
    const uint64_t value = number(name);
    if (value > kMostNumber) refuse(fmt::format("has a '{}' above {}", name, kMostNumber));
    return static_cast<uint32_t>(value);
  }
  std::string text(const char* name) const {
    const auto it = json_.find(name);
    if (it == json_.end() || !it->is_string()) refuse(fmt::format("has no text '{}'", name));
    return it->get<std::string>();
  }
  bool flag(const char* name) const {
    const auto it = json_.find(name);
    return it != json_.end() && it->is_boolean() && it->get<bool>();
  }
  const Json& json() const { return json_; }

 private:
  static constexpr uint64_t kMostNumber = 1'000'000;

  const Json& json_;
  const size_t number_;
};

struct Slice {
  std::string name, category;
  uint64_t begin_ns = 0, end_ns = 0;
  std::vector<size_t> after{};  // slices of the same queue
  Json args{};
  uint32_t tid = 0;

  // The end is outside of the slice, and flows bind to a slice that contains their time.
  uint64_t last_ns() const { return std::max(begin_ns, end_ns == 0 ? 0 : end_ns - 1); }
};

struct Queue {
  uint32_t gpu = 0;
  std::string name{};
  std::vector<Slice> slices{};
  std::vector<std::pair<uint64_t, std::string>> doorbells{};  // time and name
  std::map<uint64_t, size_t> packets{};                       // slices by index
};

class Trace {
 public:
  void add(const TraceLine& line) {
    const std::string type = line.text("type");
    const uint32_t number = line.small_number("queue");
    const uint32_t gpu = line.has("gpu") ? line.small_number("gpu") : 0;
    if (type == "doorbell") {
      Queue& queue = queue_of(gpu, number);
      const Json& json = line.json();
      queue.doorbells.emplace_back(
          line.number("ns"), "doorbell " + (json.contains("value") ? json["value"].dump() : "?"));
      return;
    }
    Slice slice{.name = type,
                .category = "packet",
                .begin_ns = line.number("start_ns"),
                .end_ns = line.number("end_ns")};
    if (slice.end_ns < slice.begin_ns) line.refuse("ends before it begins");
    for (const auto& [name, value] : line.json().items())
      if (name != "queue" && name != "gpu" && name != "start_ns" && name != "end_ns")
        slice.args[name] = value;
    if (type == "sdma") {
      slice.name = line.text("engine");
      slice.category = "copy";
      Queue& queue = queue_of(gpu, number);
      queue.name = fmt::format("queue {} (SDMA)", number);
      queue.slices.push_back(std::move(slice));
      return;
    }
    if (line.has("kernel")) {
      slice.name = line.text("kernel");
      if (slice.name.ends_with(".kd")) slice.name.resize(slice.name.size() - 3);
      slice.category = "dispatch";
    }
    const uint64_t index = line.number("index");
    if (queue_of(gpu, number).packets.contains(index)) {
      if (index != 0) mixed_.insert({gpu, number});
      ++uses_[{gpu, number}];
    }
    Queue& queue = queue_of(gpu, number);
    queue.packets[index] = queue.slices.size();
    queue.slices.push_back(std::move(slice));
  }

  Json document() {
    Json events = Json::array();
    std::set<uint32_t> gpus;
    find_overlaps();
    Json unordered = Json::array();
    for (const auto& [gpu, number] : mixed_)
      unordered.push_back(fmt::format("queue {} of GPU {}", number, gpu));
    for (auto& [key, queue] : queues_) {
      gpus.insert(queue.gpu);
      if (!mixed_.contains({std::get<0>(key), std::get<1>(key)})) order(queue);
      place(queue);
    }
    for (const uint32_t gpu : gpus)
      names_.push_back(metadata("process_name", gpu, 0, fmt::format("GPU {} (virtual)", gpu)));
    for (const auto& [key, queue] : queues_) write(queue);
    std::ranges::stable_sort(events_, {}, &std::pair<uint64_t, Json>::first);
    for (Json& name : names_) events.push_back(std::move(name));
    for (auto& [ns, event] : events_) events.push_back(std::move(event));
    Json about{{"time", "of a virtual GPU, not of hardware"}};
    if (!unordered.empty()) about["without dependencies, processes mixed"] = std::move(unordered);
    return {{"displayTimeUnit", "ns"},
            {"otherData", std::move(about)},
            {"traceEvents", std::move(events)}};
  }

 private:
  using Key = std::pair<uint32_t, uint32_t>;  // GPU and queue

  Queue& queue_of(uint32_t gpu, uint32_t number) {
    const uint32_t use = uses_[{gpu, number}];
    const auto [found, is_new] = queues_.try_emplace(std::tuple(gpu, number, use));
    if (is_new) {
      found->second.gpu = gpu;
      found->second.name = use == 0 ? fmt::format("queue {}", number)
                                    : fmt::format("queue {}, process {}", number, use + 1);
    }
    return found->second;
  }

  // Processes that used a queue's number at the same time may have written in turns.
  void find_overlaps() {
    std::map<Key, uint64_t> ends;
    for (const auto& [key, queue] : queues_) {
      const Key name{std::get<0>(key), std::get<1>(key)};
      for (const Slice& slice : queue.slices)
        if (const auto end = ends.find(name); end != ends.end() && slice.begin_ns < end->second)
          mixed_.insert(name);
      for (const Slice& slice : queue.slices) ends[name] = std::max(ends[name], slice.end_ns);
    }
  }

  static void order(Queue& queue) {
    constexpr size_t kNone = std::numeric_limits<size_t>::max();
    std::vector<size_t> open;  // the last packet with a barrier bit, and those after it
    size_t holder = kNone;     // a barrier-AND or -OR packet that the next packet waits for
    for (const auto& [index, i] : queue.packets) {
      Slice& slice = queue.slices[i];
      const bool barrier = slice.args.contains("barrier") && slice.args["barrier"] == true;
      if (barrier) {
        slice.after = open;
        open.clear();
        holder = kNone;
      } else if (holder != kNone) {
        slice.after = {holder};
      }
      open.push_back(i);
      if (slice.name == "barrier_and" || slice.name == "barrier_or") holder = i;
    }
  }

  // Gives each slice a lane of the queue. Viewers require thread numbers that are unique over all
  // processes.
  void place(Queue& queue) {
    std::vector<Slice*> slices;
    for (Slice& slice : queue.slices) slices.push_back(&slice);
    std::ranges::stable_sort(
        slices, {}, [](const Slice* slice) { return std::pair(slice->begin_ns, slice->end_ns); });
    std::vector<uint64_t> free_ns(1);  // per lane; doorbells are in the first
    const uint32_t first = next_tid_;
    for (Slice* slice : slices) {
      auto lane =
          std::ranges::find_if(free_ns, [&](uint64_t free) { return free <= slice->begin_ns; });
      if (lane == free_ns.end()) lane = free_ns.insert(lane, 0);
      *lane = std::max(slice->end_ns, slice->begin_ns + 1);
      slice->tid = first + static_cast<uint32_t>(lane - free_ns.begin());
    }
    for (uint32_t lane = 0; lane < free_ns.size(); ++lane)
      names_.push_back(
          metadata("thread_name", queue.gpu, first + lane,
                   lane == 0 ? queue.name : fmt::format("{}, lane {}", queue.name, lane + 1)));
    first_tid_.push_back(first);
    next_tid_ += static_cast<uint32_t>(free_ns.size());
    for (const Slice& slice : queue.slices) origin_ns_ = std::min(origin_ns_, slice.begin_ns);
    for (const auto& [ns, name] : queue.doorbells) origin_ns_ = std::min(origin_ns_, ns);
  }

  static Json metadata(const char* what, uint32_t gpu, uint32_t tid, const std::string& name) {
    return {
        {"ph", "M"}, {"name", what}, {"pid", gpu + 1}, {"tid", tid}, {"args", {{"name", name}}}};
  }

  Json event(const char* phase, const std::string& name, const std::string& category, uint32_t gpu,
             uint32_t tid, uint64_t ns) const {
    return {{"ph", phase},    {"name", name}, {"cat", category},
            {"pid", gpu + 1}, {"tid", tid},   {"ts", us(ns - origin_ns_)}};
  }

  static double us(uint64_t ns) { return static_cast<double>(ns) / 1000; }

  void write(const Queue& queue) {
    const uint32_t first = first_tid_[written_++];
    for (const Slice& slice : queue.slices) {
      Json json = event("X", slice.name, slice.category, queue.gpu, slice.tid, slice.begin_ns);
      json["dur"] = us(slice.end_ns - slice.begin_ns);
      json["args"] = slice.args;
      events_.emplace_back(slice.begin_ns, std::move(json));
    }
    for (const auto& [ns, name] : queue.doorbells) {
      Json json = event("i", name, "doorbell", queue.gpu, first, ns);
      json["s"] = "t";
      events_.emplace_back(ns, std::move(json));
    }
    for (const Slice& slice : queue.slices)
      for (const size_t i : slice.after) flow(queue, queue.slices[i], slice);
  }

  void flow(const Queue& queue, const Slice& earlier, const Slice& later) {
    if (earlier.end_ns > later.begin_ns || earlier.last_ns() > later.begin_ns) {
      Json json = event("i", "began before " + earlier.name + " had ended", "dependency", queue.gpu,
                        later.tid, later.begin_ns);
      json["s"] = "t";
      events_.emplace_back(later.begin_ns, std::move(json));
      return;
    }
    const uint64_t id = ++flows_;
    Json start = event("s", "depends", "dependency", queue.gpu, earlier.tid, earlier.last_ns());
    start["id"] = id;
    events_.emplace_back(earlier.last_ns(), std::move(start));
    Json finish = event("f", "depends", "dependency", queue.gpu, later.tid, later.begin_ns);
    finish["id"] = id;
    finish["bp"] = "e";  // binds to the slice that contains it, not to the next one
    events_.emplace_back(later.begin_ns, std::move(finish));
  }

  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Queue> queues_;  // GPU, queue, use
  std::map<Key, uint32_t> uses_;
  std::set<Key> mixed_;              // packets of processes cannot be told apart
  std::vector<uint32_t> first_tid_;  // of each queue
  size_t written_ = 0;
  uint32_t next_tid_ = 1;
  uint64_t origin_ns_ = std::numeric_limits<uint64_t>::max();
  uint64_t flows_ = 0;
  std::vector<Json> names_;
  std::vector<std::pair<uint64_t, Json>> events_;  // with their times
};

}  // namespace

Json perfetto_trace(const std::vector<Json>& events, int64_t queue) {
  Trace trace;
  for (size_t i = 0; i < events.size(); ++i) {
    const TraceLine line(events[i], i + 1);
    if (queue >= 0 && line.number("queue") != static_cast<uint64_t>(queue)) continue;
    trace.add(line);
  }
  return trace.document();
}

}  // namespace uptempo::aql_dump
