#include "tools/fence_scope/run/run_packets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <stdexcept>
#include <utility>

#include <uptempo/aql/text.hpp>

namespace uptempo::fence_scope {
namespace {

using aql::FenceScope;
using Role = Bench::Packet::Role;

constexpr size_t kDependencies = 5;  // of a barrier-AND packet
constexpr std::chrono::seconds kPatience{60};

}  // namespace

bool is_used(const Sequence& sequence, uint32_t queue) noexcept {
  return std::ranges::any_of(sequence.steps, [&](const Step& step) {
    return step.kind == Step::Kind::dispatch && step.queue == queue;
  });
}

uint64_t most_packets(const Sequence& sequence, uint32_t queue) {
  // gate and closing packet; each dispatch, and the packets that wait for its steps
  uint64_t packets = 2;
  for (const size_t step : sequence.dispatches(queue))
    packets += 1 + (sequence.steps[step].after.size() + kDependencies - 1) / kDependencies;
  return packets;
}

std::vector<support::PacketQueue> queues_for(const Agent& gpu, const Sequence& sequence,
                                             TimingMode timing) {
  std::vector<support::PacketQueue> queues;
  for (const uint32_t number : kQueues) {
    const uint64_t packets = most_packets(sequence, number);
    if (packets > gpu.properties().queue_max_packets)
      throw support::UsageError(fmt::format(
          "steps: queue {1} needs {0} packets, but this device's queues hold at most {2}", packets,
          number, gpu.properties().queue_max_packets));
    // Queue 0 also has the packets before and after a run.
    const uint64_t size =
        std::bit_ceil(std::max<uint64_t>(packets, 2 * sequence.buffers.size() + 1));
    queues.emplace_back(gpu, static_cast<uint32_t>(std::max<uint64_t>(size, 64)), kPatience);
    if (timing != TimingMode::none) queues.back().enable_profiling();
  }
  return queues;
}

std::vector<Action> actions(const Sequence& sequence,
                            std::span<const aql::KernelDispatch> dispatches,
                            const SignalHandles& signals, const Headers& headers, Release release) {
  if (headers.size() != sequence.steps.size())
    throw std::invalid_argument(fmt::format("Bench: {} headers for a sequence of {} steps",
                                            headers.size(), sequence.steps.size()));
  std::vector<Action> open(kQueues.size()), all;
  const auto add = [&](const Bench::Packet& role, const aql::Packet64& packet) {
    open[role.queue].packets.push_back(packet);
    open[role.queue].roles.push_back(role);
  };
  const auto send = [&] {
    for (const uint32_t queue : kQueues) {
      if (open[queue].packets.empty()) continue;
      open[queue].queue = queue;
      all.push_back(std::move(open[queue]));
      open[queue] = {};
    }
  };
  for (const uint32_t queue : kQueues)
    if (is_used(sequence, queue) && release == Release::gated)
      add({.role = Role::gate, .queue = queue},
          aql::to_packet(aql::BarrierAnd{flags_of(Role::gate), {signals.gate}, {}}));
  for (size_t i = 0; i < sequence.steps.size(); ++i) {
    const Step& step = sequence.steps[i];
    if (step.kind == Step::Kind::copy) {
      send();
      all.push_back({.copy = i});
      continue;
    }
    for (size_t first = 0; first < step.after.size(); first += kDependencies) {
      const std::span<const size_t> awaited =
          std::span(step.after).subspan(first, std::min(kDependencies, step.after.size() - first));
      aql::BarrierAnd packet{
          .flags = flags_of(Role::waits), .dependencies = {}, .completion_signal = {}};
      for (size_t d = 0; d < awaited.size(); ++d)
        packet.dependencies[d] = signals.of_step[awaited[d]];
      add({.role = Role::waits, .queue = step.queue, .step = i, .after = awaited},
          aql::to_packet(packet));
    }
    aql::KernelDispatch packet = dispatches[i];
    packet.flags = headers[i];
    packet.completion_signal = signals.of_step[i];
    add({.role = Role::dispatch, .queue = step.queue, .step = i}, aql::to_packet(packet));
  }
  for (const uint32_t queue : kQueues)
    if (is_used(sequence, queue))
      add({.role = Role::closing, .queue = queue},
          aql::to_packet(aql::BarrierAnd{.flags = flags_of(Role::closing),
                                         .completion_signal = signals.closing[queue]}));
  send();
  return all;
}

std::vector<Bench::Packet> published(const std::vector<Action>& actions) {
  std::vector<Bench::Packet> packets;
  for (const Action& action : actions) {
    for (size_t i = 0; i < action.roles.size(); ++i) {
      Bench::Packet& packet = packets.emplace_back(action.roles[i]);
      packet.index = action.roles[0].index + i;
      packet.published_ns = action.roles[0].published_ns;
    }
  }
  std::ranges::stable_sort(packets, {}, &Bench::Packet::queue);
  return packets;
}

std::string text_of(std::span<const Action> actions, const Sequence& sequence) {
  std::string text;
  for (const Action& action : actions) {
    if (action.packets.empty()) {
      const Step& copy = sequence.steps[action.copy];
      text += fmt::format("copy engine: '{}', {} bytes\n\n", copy.name, copy.to.bytes);
      continue;
    }
    for (size_t i = 0; i < action.packets.size(); ++i)
      text +=
          fmt::format("queue {}: {}\n{}\n{}\n\n", action.queue, in_words(action.roles[i], sequence),
                      aql::format(action.packets[i]), aql::format_words(action.packets[i]));
  }
  return text;
}

std::string dry_run(const Sequence& sequence, const Headers& headers) {
  require_valid(sequence);
  SignalHandles signals;
  signals.of_step.resize(sequence.steps.size());
  for (const uint32_t queue : kQueues) signals.closing[queue] = {queue + 1};
  const auto number = [&](size_t step) { signals.of_step[step] = {kQueues.size() + 1 + step}; };
  std::vector<aql::KernelDispatch> dispatches;
  for (size_t i = 0; i < sequence.steps.size(); ++i) {
    const Step& step = sequence.steps[i];
    // A step has a signal if another step or the host waits for it.
    if (step.kind == Step::Kind::copy) number(i);
    for (const size_t waited : step.after) number(waited);
    dispatches.push_back({.grid = step.grid.items,
                          .workgroup = step.grid.workgroup,
                          .dimensions = step.grid.dimensions});
  }
  return text_of(actions(sequence, dispatches, signals, headers, Release::ungated), sequence);
}

DeviceCounts counts_of(std::span<const Action> actions, const Sequence& sequence,
                       const Headers& headers, size_t step_signals) {
  DeviceCounts counts;
  for (const Action& action : actions) {
    counts.packets += action.packets.size();
    counts.doorbells += action.packets.empty() ? 0 : 1;
  }
  counts.signal_updates = step_signals;
  for (const uint32_t queue : kQueues) {
    counts.interrupts += is_used(sequence, queue) ? 1 : 0;
    counts.signal_updates += is_used(sequence, queue) ? 1 : 0;
  }
  for (size_t i = 0; i < headers.size(); ++i) {
    if (sequence.steps[i].kind == Step::Kind::copy) {
      ++counts.interrupts;
      continue;
    }
    counts.barrier_bits += headers[i].barrier == aql::Barrier::on ? 1 : 0;
    counts.agent_acquires += headers[i].acquire == FenceScope::agent ? 1 : 0;
    counts.agent_releases += headers[i].release == FenceScope::agent ? 1 : 0;
    counts.system_acquires += headers[i].acquire == FenceScope::system ? 1 : 0;
    counts.system_releases += headers[i].release == FenceScope::system ? 1 : 0;
  }
  return counts;
}

}  // namespace uptempo::fence_scope
