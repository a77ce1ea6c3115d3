#include "tools/fence_scope/run/dry_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <uptempo/aql/text.hpp>

namespace uptempo::fence_scope {

using aql::FenceScope;

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
