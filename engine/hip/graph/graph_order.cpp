#include <uptempo/hip/graph/graph_order.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <uptempo/runtime/error.hpp>

namespace uptempo::hip {
namespace {

void sort_unique(std::vector<size_t>& numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

// Every vertex after those that it follows.
std::vector<size_t> topological(std::span<const GraphVertex> vertices) {
  std::vector<std::vector<size_t>> followers(vertices.size());
  std::vector<size_t> missing(vertices.size()), order;
  for (size_t v = 0; v < vertices.size(); ++v) {
    missing[v] = vertices[v].after.size();
    for (const size_t earlier : vertices[v].after) followers[earlier].push_back(v);
    if (missing[v] == 0) order.push_back(v);
  }
  for (size_t i = 0; i < order.size(); ++i)
    for (const size_t v : followers[order[i]])
      if (--missing[v] == 0) order.push_back(v);
  if (order.size() != vertices.size())
    throw Error({.code = ErrorCode::argument,
                 .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "hip::import",
                 .asked = fmt::format("a graph of {} nodes", vertices.size()),
                 .found = fmt::format("{} of them depend on one another in a cycle",
                                      vertices.size() - order.size()),
                 .remedy = "remove the edge that closes the cycle"});
  return order;
}

}  // namespace

std::vector<GraphStep> order_graph(std::span<const GraphVertex> vertices) {
  // Per vertex: its level, and the dispatches that a follower waits for.
  std::vector<size_t> level(vertices.size());
  std::vector<std::vector<size_t>> waits(vertices.size());
  std::vector<size_t> dispatches;
  for (const size_t v : topological(vertices)) {
    const GraphVertex& vertex = vertices[v];
    for (const size_t earlier : vertex.after) {
      const bool counts = vertices[earlier].is_dispatch;
      level[v] = std::max(level[v], level[earlier] + (counts ? 1 : 0));
      if (counts) {
        waits[v].push_back(earlier);
      } else {
        waits[v].insert(waits[v].end(), waits[earlier].begin(), waits[earlier].end());
      }
    }
    sort_unique(waits[v]);
    if (vertex.is_dispatch) dispatches.push_back(v);
  }
  std::ranges::sort(dispatches, [&](size_t a, size_t b) {
    return level[a] != level[b] ? level[a] < level[b] : a < b;
  });
  std::vector<size_t> step_of(vertices.size());
  std::vector<GraphStep> steps;
  steps.reserve(dispatches.size());
  for (const size_t v : dispatches) {
    step_of[v] = steps.size();
    GraphStep& step = steps.emplace_back(GraphStep{v, std::move(waits[v])});
    for (size_t& earlier : step.after) earlier = step_of[earlier];
    std::ranges::sort(step.after);
  }
  return steps;
}

}  // namespace uptempo::hip
