#include "tools/support/trace/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <tuple>

#include <uptempo/aql/text.hpp>

namespace uptempo::support {
namespace {

using nlohmann::ordered_json;

// An execution of a packet or a copy, and its position in the drawing.
struct Place {
  uint32_t pid = 0, tid = 0;
  uint64_t begin_ns = 0, end_ns = 0;
};

class Writer {
 public:
  explicit Writer(const TraceRun& run) : run_(run), origin_ns_(origin()) {}

  ordered_json document() {
    check();
    place();
    for (size_t i = 0; i < run_.packets.size(); ++i) packet(i);
    for (size_t i = 0; i < run_.copies.size(); ++i) copy(i);
    for (ordered_json& end : ends_) events_.push_back(std::move(end));
    ring();
    doorbells();
    // Viewers expect events in time order; at equal times a slice precedes the flows that bind to
    // it.
    std::ranges::stable_sort(events_, {},
                             [](const ordered_json& event) { return event["ts"].get<double>(); });
    ordered_json all = std::move(names_);
    for (ordered_json& event : events_) all.push_back(std::move(event));
    ordered_json about{
        {"device", run_.device},
        {"time", run_.is_virtual ? "of a virtual GPU, not of hardware" : "of hardware"}};
    for (const TraceRun::Queue& queue : run_.mixed)
      about["without dependencies, processes mixed"].push_back(name_of(queue));
    return {{"displayTimeUnit", "ns"},
            {"otherData", std::move(about)},
            {"traceEvents", std::move(all)}};
  }

 private:
  uint64_t origin() const {
    uint64_t first = std::numeric_limits<uint64_t>::max();
    for (const TraceRun::Packet& packet : run_.packets)
      first = std::min({first, packet.begin_ns, packet.submit_ns.value_or(packet.begin_ns)});
    for (const TraceRun::Copy& copy : run_.copies) first = std::min(first, copy.begin_ns);
    for (const TraceRun::RingSample& sample : run_.ring) first = std::min(first, sample.ns);
    for (const TraceRun::Doorbell& doorbell : run_.doorbells) first = std::min(first, doorbell.ns);
    return first;
  }

  double us(uint64_t ns) const { return static_cast<double>(ns - origin_ns_) / 1000; }

  template <class What>
  void check_dependencies(const What& what, const std::string& name) const {
    for (const size_t packet : what.after_packets)
      if (packet >= run_.packets.size())
        throw std::invalid_argument(
            fmt::format("{} depends on packet {} of {}", name, packet, run_.packets.size()));
    for (const size_t copy : what.after_copies)
      if (copy >= run_.copies.size())
        throw std::invalid_argument(
            fmt::format("{} depends on copy {} of {}", name, copy, run_.copies.size()));
    if (what.end_ns < what.begin_ns)
      throw std::invalid_argument(fmt::format("{} ends at {} ns, before it begins at {} ns", name,
                                              what.end_ns, what.begin_ns));
  }

  void check() const {
    for (size_t i = 0; i < run_.packets.size(); ++i) {
      const TraceRun::Packet& packet = run_.packets[i];
      const std::string name = fmt::format("packet {} ('{}')", i, packet.name);
      check_dependencies(packet, name);
      if (packet.submit_ns && *packet.submit_ns > packet.begin_ns)
        throw std::invalid_argument(
            fmt::format("{} is submitted at {} ns, after it begins at {} ns", name,
                        *packet.submit_ns, packet.begin_ns));
    }
    for (size_t i = 0; i < run_.copies.size(); ++i)
      check_dependencies(run_.copies[i], fmt::format("copy {} ('{}')", i, run_.copies[i].name));
    for (size_t i = 0; i < run_.ring.size(); ++i)
      if (run_.ring[i].read_index > run_.ring[i].write_index)
        throw std::invalid_argument(fmt::format(
            "sample {} of queue {} has a read index of {} beyond its write index of {}", i,
            run_.ring[i].queue.number, run_.ring[i].read_index, run_.ring[i].write_index));
  }

  void name(const char* what, uint32_t pid, uint32_t tid, const std::string& text) {
    names_.push_back(
        {{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", {{"name", text}}}});
  }

  std::string labelled(const std::string& text) const {
    return run_.is_virtual ? text + " (virtual GPU)" : text;
  }

  // Viewers require thread numbers that are unique over all processes.
  static constexpr uint32_t kThreads = 100'000, kWaiting = kThreads - 1;
  static uint32_t thread(uint32_t pid, uint32_t number) { return pid * kThreads + number; }

  // Puts executions of one queue, or all copies, into as few lanes as separate them.
  void place_in_lanes(uint32_t pid, const std::string& process, std::vector<Place*> places) {
    name("process_name", pid, 0, labelled(process));
    std::ranges::stable_sort(
        places, {}, [](const Place* place) { return std::pair(place->begin_ns, place->end_ns); });
    std::vector<uint64_t> free_ns;
    for (Place* place : places) {
      auto lane =
          std::ranges::find_if(free_ns, [&](uint64_t free) { return free <= place->begin_ns; });
      if (lane == free_ns.end()) lane = free_ns.insert(lane, 0);
      // an execution of length 0 occupies its nanosecond
      *lane = std::max(place->end_ns, place->begin_ns + 1);
      place->pid = pid;
      place->tid = thread(pid, static_cast<uint32_t>(lane - free_ns.begin()));
    }
    for (size_t lane = 0; lane < free_ns.size(); ++lane)
      name("thread_name", pid, thread(pid, static_cast<uint32_t>(lane)),
           fmt::format("executing, lane {}", lane));
    // Viewers show each in a row and sort threads by name: after the lanes. Doorbells are there,
    // too.
    name("thread_name", pid, thread(pid, kWaiting), "from submission to end");
  }

  void place() {
    std::map<TraceRun::Queue, std::vector<Place*>> queues;
    packets_.resize(run_.packets.size());
    for (size_t i = 0; i < run_.packets.size(); ++i) {
      packets_[i].begin_ns = run_.packets[i].begin_ns;
      packets_[i].end_ns = run_.packets[i].end_ns;
      queues[run_.packets[i].queue].push_back(&packets_[i]);
    }
    for (const TraceRun::RingSample& sample : run_.ring) queues[sample.queue];
    for (const TraceRun::Doorbell& doorbell : run_.doorbells) queues[doorbell.queue];
    std::map<uint32_t, std::vector<Place*>> copies;  // by GPU
    copies_.resize(run_.copies.size());
    for (size_t i = 0; i < run_.copies.size(); ++i) {
      copies_[i].begin_ns = run_.copies[i].begin_ns;
      copies_[i].end_ns = run_.copies[i].end_ns;
      copies[run_.copies[i].gpu].push_back(&copies_[i]);
    }
    has_gpus_ = (!queues.empty() && queues.rbegin()->first.gpu != 0) ||
                (!copies.empty() && copies.rbegin()->first != 0);
    uint32_t pid = 1;
    for (const auto& [gpu, places] : copies) place_in_lanes(pid++, of_gpu(gpu, "copies"), places);
    for (const auto& [queue, places] : queues) {
      if (pid >= std::numeric_limits<uint32_t>::max() / kThreads)
        throw std::invalid_argument(fmt::format("{} queues are too many", queues.size()));
      pids_[queue] = pid;
      place_in_lanes(pid++, name_of(queue), places);
    }
  }

  std::string of_gpu(uint32_t gpu, const std::string& what) const {
    return has_gpus_ ? fmt::format("GPU {}, {}", gpu, what) : what;
  }
  std::string name_of(const TraceRun::Queue& queue) const {
    const std::string name = of_gpu(queue.gpu, fmt::format("queue {}", queue.number));
    return queue.process == 0 ? name : fmt::format("{}, process {}", name, queue.process + 1);
  }

  // Adds an event with the fields that all of these have.
  ordered_json& add(std::vector<ordered_json>& to, const char* phase, const char* category,
                    const std::string& text, uint32_t pid, uint32_t tid, uint64_t ns) const {
    return to.emplace_back(ordered_json{{"ph", phase},
                                        {"cat", category},
                                        {"name", text},
                                        {"pid", pid},
                                        {"tid", tid},
                                        {"ts", us(ns)}});
  }

  void slices(const Place& place, const std::string& text, const char* category, uint64_t from_ns,
              const ordered_json& args) {
    const std::string id = fmt::format("0x{:x}", ++next_id_);
    const uint32_t waiting = thread(place.pid, kWaiting);
    ordered_json& begin = add(events_, "b", category, text, place.pid, waiting, from_ns);
    begin["id"] = id;
    begin["args"] = args;
    ordered_json& execution =
        add(events_, "X", category, text, place.pid, place.tid, place.begin_ns);
    execution["dur"] = static_cast<double>(place.end_ns - place.begin_ns) / 1000;
    execution["args"] = args;
    add(ends_, "e", category, text, place.pid, waiting, place.end_ns)["id"] = id;
  }

  // `waits`: the reader executes while it waits, and then ends.
  void flow(const Place& writer, const std::string& writer_name, const Place& reader, bool waits) {
    const uint64_t from_ns = last_inside(writer);
    const uint64_t to_ns =
        waits ? std::max(reader.begin_ns, std::min(writer.end_ns, last_inside(reader)))
              : reader.begin_ns;
    const uint64_t due_ns = waits ? reader.end_ns : reader.begin_ns;
    if (writer.end_ns > due_ns || from_ns > to_ns) {
      const std::string text = fmt::format("{} {} {} had ended", waits ? "ended" : "began",
                                           writer.end_ns > due_ns ? "before" : "when", writer_name);
      add(events_, "i", "dependency", text, reader.pid, reader.tid, due_ns)["s"] = "t";
      return;
    }
    const uint64_t id = ++next_id_;
    add(events_, "s", "dependency", "depends", writer.pid, writer.tid, from_ns)["id"] = id;
    ordered_json& end = add(events_, "f", "dependency", "depends", reader.pid, reader.tid, to_ns);
    end["id"] = id;
    end["bp"] = "e";
  }

  // A flow binds to the slice that contains its time; the end time is outside the slice.
  static uint64_t last_inside(const Place& place) {
    return place.end_ns > place.begin_ns ? place.end_ns - 1 : place.begin_ns;
  }

  template <class What>
  void flows(const What& what, const Place& reader, bool waits) {
    for (const size_t packet : what.after_packets)
      flow(packets_[packet], run_.packets[packet].name, reader, waits);
    for (const size_t copy : what.after_copies)
      flow(copies_[copy], run_.copies[copy].name, reader, waits);
  }

  void packet(size_t i) {
    const TraceRun::Packet& packet = run_.packets[i];
    ordered_json args{{"type", packet.type}, {"index", packet.index}};
    if (!packet.details.is_null()) args.update(packet.details);
    if (packet.flags) {
      args["barrier"] = packet.flags->barrier == aql::Barrier::on;
      args["acquire"] = aql::scope_name(packet.flags->acquire);
      args["release"] = aql::scope_name(packet.flags->release);
    }
    if (packet.submit_ns)
      args["waited_us"] = static_cast<double>(packet.begin_ns - *packet.submit_ns) / 1000;
    slices(packets_[i], packet.name, packet.type == "kernel_dispatch" ? "dispatch" : "packet",
           packet.submit_ns.value_or(packet.begin_ns), args);
    flows(packet, packets_[i], packet.type == "barrier_and" || packet.type == "barrier_or");
  }

  void copy(size_t i) {
    const TraceRun::Copy& copy = run_.copies[i];
    ordered_json args{{"engine", copy.engine}, {"bytes", copy.bytes}};
    if (!copy.details.is_null()) args.update(copy.details);
    slices(copies_[i], copy.name, "copy", copy.begin_ns, args);
    flows(copy, copies_[i], false);
  }

  void ring() {
    for (const TraceRun::RingSample& sample : run_.ring)
      events_.push_back({{"ph", "C"},
                         {"name", "ring occupancy"},
                         {"pid", pids_.at(sample.queue)},
                         {"tid", thread(pids_.at(sample.queue), 0)},
                         {"ts", us(sample.ns)},
                         {"args", {{"packets", sample.write_index - sample.read_index}}}});
  }

  void doorbells() {
    for (const TraceRun::Doorbell& doorbell : run_.doorbells) {
      const uint32_t pid = pids_.at(doorbell.queue);
      add(events_, "i", "doorbell", fmt::format("doorbell {}", doorbell.value), pid,
          thread(pid, kWaiting), doorbell.ns)["s"] = "t";
    }
  }

  const TraceRun& run_;
  const uint64_t origin_ns_;
  bool has_gpus_ = false;
  std::map<TraceRun::Queue, uint32_t> pids_;
  std::vector<Place> packets_, copies_;
  ordered_json names_ = ordered_json::array();
  std::vector<ordered_json> events_, ends_;
  uint64_t next_id_ = 0;
};

}  // namespace

void add_queue_order(TraceRun& run) {
  constexpr size_t kNothing = ~size_t{0};
  std::map<TraceRun::Queue, std::map<uint64_t, size_t>> queues;
  for (size_t i = 0; i < run.packets.size(); ++i)
    if (!run.mixed.contains(run.packets[i].queue))
      queues[run.packets[i].queue][run.packets[i].index] = i;
  for (const auto& [queue, packets] : queues) {
    std::vector<size_t> open;  // the last packet with a barrier bit, and those after it
    // a barrier-AND or -OR packet without a later packet with a barrier bit
    size_t holder = kNothing;
    for (const auto& [index, i] : packets) {
      TraceRun::Packet& packet = run.packets[i];
      if (packet.flags && packet.flags->barrier == aql::Barrier::on) {
        packet.after_packets.insert(packet.after_packets.end(), open.begin(), open.end());
        open.clear();
        holder = kNothing;
      } else if (holder != kNothing) {
        packet.after_packets.push_back(holder);
      }
      open.push_back(i);
      if (packet.type == "barrier_and" || packet.type == "barrier_or") holder = i;
    }
  }
}

ordered_json trace_json(const TraceRun& run) { return Writer(run).document(); }

std::string trace_text(const ordered_json& trace) {
  return trace.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace uptempo::support
