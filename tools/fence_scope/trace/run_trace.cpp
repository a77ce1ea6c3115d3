#include "tools/fence_scope/trace/run_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <stdexcept>

#include "tools/fence_scope/run/measure.hpp"
#include "tools/fence_scope/run/vgpu_process.hpp"
#include "tools/support/command.hpp"
#include "tools/support/interrupt.hpp"
#include "tools/support/program.hpp"

namespace uptempo::fence_scope {
namespace {

using nlohmann::ordered_json;
using support::TraceRun;
using Role = Bench::Packet::Role;

constexpr size_t kNothing = ~size_t{0};

std::string name_of(const Bench::Packet& packet, const Sequence& sequence) {
  return packet.role == Role::dispatch ? sequence.steps[packet.step].name
                                       : in_words(packet, sequence);
}

// Positions of steps in a TraceRun.
struct Steps {
  explicit Steps(size_t steps) : packet(steps, kNothing), copy(steps, kNothing) {}
  std::vector<size_t> packet, copy;

  template <class What>
  void depend(What& what, std::span<const size_t> steps) const {
    for (const size_t step : steps) {
      if (packet[step] != kNothing) what.after_packets.push_back(packet[step]);
      if (copy[step] != kNothing) what.after_copies.push_back(copy[step]);
    }
  }
};

// Dispatches depend on others through the packets before them, copies directly.
void add_dependencies(TraceRun& trace, const Sequence& sequence, const Bench::Run& run,
                      const Steps& steps) {
  for (size_t i = 0; i < run.packets.size(); ++i)
    steps.depend(trace.packets[i], run.packets[i].after);
  for (size_t step = 0; step < sequence.steps.size(); ++step)
    if (steps.copy[step] != kNothing)
      steps.depend(trace.copies[steps.copy[step]], sequence.steps[step].after);
  support::add_queue_order(trace);
}

// Removes packets. What depends on a removed one inherits its dependencies; those are removed
// packets of lower positions, or packets that stay.
void keep(TraceRun& trace, const std::vector<bool>& kept) {
  std::vector<size_t> place(kept.size());  // of the packets that stay
  std::transform_exclusive_scan(kept.begin(), kept.end(), place.begin(), size_t{0}, std::plus{},
                                [](bool stays) { return size_t{stays}; });
  const auto inherit = [&](auto& what) {
    std::set<size_t> packets, copies(what.after_copies.begin(), what.after_copies.end());
    for (const size_t earlier : what.after_packets) {
      if (kept[earlier]) {
        packets.insert(place[earlier]);
        continue;
      }
      const TraceRun::Packet& removed = trace.packets[earlier];
      packets.insert(removed.after_packets.begin(), removed.after_packets.end());
      copies.insert(removed.after_copies.begin(), removed.after_copies.end());
    }
    what.after_packets.assign(packets.begin(), packets.end());
    what.after_copies.assign(copies.begin(), copies.end());
  };
  std::ranges::for_each(trace.packets, inherit);
  std::ranges::for_each(trace.copies, inherit);
  std::vector<TraceRun::Packet> packets;
  for (size_t i = 0; i < kept.size(); ++i)
    if (kept[i]) packets.push_back(std::move(trace.packets[i]));
  trace.packets = std::move(packets);
}

uint64_t monotonic_ns() {
  return static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

}  // namespace

TraceRun trace_of_spans(const Sequence& sequence, const Headers& headers, const Bench::Run& run) {
  TraceRun trace;
  Steps steps(sequence.steps.size());
  std::vector<bool> timed;
  for (const Bench::Packet& packet : run.packets) {
    TraceRun::Packet to{
        .queue = packet.queue,
        .index = packet.index,
        .name = name_of(packet, sequence),
        .type = packet.role == Role::dispatch ? "kernel_dispatch" : "barrier_and",
        .flags = packet.role == Role::dispatch ? headers[packet.step] : flags_of(packet.role)};
    const std::optional<Bench::Span>* const span =
        packet.role == Role::dispatch ? &run.spans.at(packet.step) : nullptr;
    timed.push_back(span != nullptr && span->has_value());
    if (timed.back()) {
      to.begin_ns = (*span)->begin_ns;
      to.end_ns = (*span)->end_ns;
      // The host's and the device's clock meet here, with the error of the runtime's conversion.
      if (packet.published_ns) to.submit_ns = std::min(*packet.published_ns, (*span)->begin_ns);
    }
    if (packet.role == Role::dispatch) steps.packet[packet.step] = trace.packets.size();
    trace.packets.push_back(std::move(to));
  }
  for (size_t step = 0; step < sequence.steps.size(); ++step) {
    if (sequence.steps[step].kind != Step::Kind::copy || !run.spans.at(step)) continue;
    steps.copy[step] = trace.copies.size();
    trace.copies.push_back({.name = sequence.steps[step].name,
                            .bytes = sequence.steps[step].to.bytes,
                            .begin_ns = run.spans[step]->begin_ns,
                            .end_ns = run.spans[step]->end_ns});
  }
  add_dependencies(trace, sequence, run, steps);
  keep(trace, timed);
  return trace;
}

TraceRun trace_of_recorded(const Sequence& sequence, const Bench::Run& run,
                           const Recorded& recorded) {
  TraceRun trace;
  trace.is_virtual = true;
  Steps steps(sequence.steps.size());
  std::map<std::pair<TraceRun::Queue, uint64_t>, const TraceRun::Packet*> packets;
  for (const TraceRun::Packet& packet : recorded.lines.packets)
    packets[{packet.queue, packet.index}] = &packet;
  for (const Bench::Packet& packet : run.packets) {
    const auto found =
        packets.find({recorded.queues[packet.queue].value_or(~uint32_t{0}), packet.index});
    if (found == packets.end())
      throw std::runtime_error(
          fmt::format("the virtual GPU's trace has no packet {} of queue {}: {}", packet.index,
                      packet.queue, in_words(packet, sequence)));
    TraceRun::Packet& to = trace.packets.emplace_back(*found->second);
    to.queue = packet.queue;
    to.name = name_of(packet, sequence);
    to.after_packets.clear();
    if (packet.role == Role::dispatch) steps.packet[packet.step] = trace.packets.size() - 1;
  }
  // Every copy during the run belongs to a step. The runtime may split a copy.
  std::vector<uint64_t> copied(sequence.steps.size());
  for (const TraceRun::Copy& line : recorded.lines.copies) {
    if (line.begin_ns < recorded.begin_ns || line.end_ns > recorded.end_ns || !line.from ||
        !line.to)
      continue;
    const auto from = recorded.place_of(*line.from), to = recorded.place_of(*line.to);
    for (size_t step = 0; step < sequence.steps.size(); ++step) {
      const Step& copy = sequence.steps[step];
      if (copy.kind != Step::Kind::copy || !from || !to || !holds(copy.from, *from) ||
          !holds(copy.to, *to) || copied[step] >= copy.to.bytes)
        continue;
      if (copied[step] == 0) {
        steps.copy[step] = trace.copies.size();
        trace.copies.push_back({.engine = line.engine,
                                .name = copy.name,
                                .begin_ns = line.begin_ns,
                                .end_ns = line.end_ns});
      }
      TraceRun::Copy& whole = trace.copies[steps.copy[step]];
      whole.begin_ns = std::min(whole.begin_ns, line.begin_ns);
      whole.end_ns = std::max(whole.end_ns, line.end_ns);
      whole.bytes = copied[step] += line.bytes;
      break;
    }
  }
  for (const TraceRun::RingSample& sample : recorded.lines.ring) {
    const auto queue = std::ranges::find(recorded.queues, sample.queue.number);
    if (queue == recorded.queues.end() || sample.ns < recorded.begin_ns ||
        sample.ns > recorded.end_ns)
      continue;
    trace.ring.push_back(sample);
    trace.ring.back().queue = static_cast<uint32_t>(queue - recorded.queues.begin());
  }
  add_dependencies(trace, sequence, run, steps);
  return trace;
}

ordered_json trace_of_case(const support::Device& device, const Case& one,
                           std::optional<double> seconds) {
  if (!device.is_virtual) {
    const double begin = steady_seconds();
    const auto require_time = [&] {
      if (support::interrupted()) throw support::Interrupted("interrupted before the traced run");
      if (seconds && steady_seconds() - begin >= *seconds)
        throw OutOfTime("the traced run had no time");
    };
    Bench bench(device.gpu, *one.sequence, TimingMode::each, require_time);
    TraceRun trace =
        trace_of_spans(*one.sequence, one.headers, bench.run(one.headers, Release::ungated));
    trace.device = device.name();
    return support::trace_json(trace);
  }
  const test::TemporaryDirectory directory;
  const std::string trace = directory.file("trace.jsonl");
  return run_under_vgpu({"--trace", trace}, kTraceTask, {&one, 1}, {trace}, seconds);
}

ordered_json trace_case(const Cases& cases, const std::vector<std::string>& arguments) {
  const std::string& file = arguments.at(0);
  const Runtime runtime;
  const Agent gpu = runtime.gpu();
  Bench bench(gpu, cases.sequences.at(0));
  Recorded recorded{.queues = device_numbers(bench),
                    .place_of = [&](uint64_t address) { return bench.place_of(address); }};
  bench.watch([&] { recorded.begin_ns = monotonic_ns(); },
              [&] { recorded.end_ns = monotonic_ns(); });
  const Bench::Run run = bench.run(cases.cases.at(0).headers, Release::ungated);
  recorded.lines = support::trace_of_vgpu(support::read_input(file), file);
  TraceRun trace = trace_of_recorded(bench.sequence(), run, recorded);
  trace.device = support::Device{.runtime = runtime, .gpu = gpu, .is_virtual = true}.name();
  return support::trace_json(trace);
}

}  // namespace uptempo::fence_scope
