#include "cp/report/deadlocks.hpp"

#include <algorithm>
#include <optional>
#include <set>

namespace uptempo::vgpu {
namespace {

using Blocked = std::set<const QueueSnapshot*>;

// The wait that keeps the queue from going on as long as all of `blocked` are, or nullopt.
std::optional<Wait> wait_of(const QueueSnapshot& queue,
                            std::span<const QueueSnapshot* const> queues, const Blocked& blocked) {
  if (queue.front != Front::dependencies) return std::nullopt;
  std::optional<Wait> first;
  for (const Dependency& dependency : queue.dependencies) {
    // Completions only decrement, so they cannot bring a negative value to 0.
    const int64_t value = dependency.signal.value.value_or(0);
    int64_t free = 0;  // completions that come without the blocked queues
    std::optional<CompleterOf> by;
    for (const CompleterOf& each : completers_of(queues, dependency.signal.handle)) {
      if (each.packet->launched || !blocked.contains(each.queue)) {
        ++free;
      } else if (!by) {
        by = each;
      }
    }
    // Conditions other than = 0 may hold after any completion.
    const bool to_zero =
        dependency.condition == HSA_SIGNAL_CONDITION_EQ && dependency.reference == 0;
    const bool waits = by && (to_zero ? free < value : free == 0);
    if (waits && !first) first = Wait{&queue, &dependency, *by};
    if (!waits && queue.any_dependency) return std::nullopt;
  }
  return first;
}

}  // namespace

std::vector<CompleterOf> completers_of(std::span<const QueueSnapshot* const> queues,
                                       uint64_t signal) {
  std::vector<CompleterOf> found;
  for (const QueueSnapshot* queue : queues)
    for (const Completer& packet : queue->completers)
      if (packet.signal == signal) found.push_back({queue, &packet});
  return found;
}

std::vector<std::vector<Wait>> deadlocks(std::span<const QueueSnapshot* const> queues) {
  // Starts with all queues that wait for signals and removes those that others let go on.
  Blocked blocked;
  for (const QueueSnapshot* queue : queues)
    if (queue->front == Front::dependencies) blocked.insert(queue);
  for (bool changed = true; changed;) {
    changed = std::erase_if(blocked, [&](const QueueSnapshot* queue) {
                return !wait_of(*queue, queues, blocked);
              }) != 0;
  }
  std::vector<std::vector<Wait>> cycles;
  Blocked seen;
  for (const QueueSnapshot* queue : queues) {
    if (!blocked.contains(queue)) continue;
    std::vector<Wait> path;
    for (const QueueSnapshot* at = queue; seen.insert(at).second;) {
      path.push_back(*wait_of(*at, queues, blocked));
      at = path.back().completer.queue;
    }
    if (path.empty()) continue;
    // The part of the path before the cycle waits for it. If the path ends in an earlier one, the
    // cycle was found then.
    const auto begin = std::ranges::find(path, path.back().completer.queue, &Wait::queue);
    if (begin != path.end()) cycles.emplace_back(begin, path.end());
  }
  return cycles;
}

}  // namespace uptempo::vgpu
