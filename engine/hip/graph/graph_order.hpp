// The order in which the nodes of a graph are dispatched. Private to engine/hip.
//
// A packet with a barrier bit waits for every earlier packet of its queue, so the order decides
// what can overlap. Nodes come by levels: a node's level is the number of dispatches on the longest
// path to it. Branches of a graph then advance together, and a graph needs at most one barrier bit
// for each level. Nodes of a level keep their own order, so that equal graphs give equal orders.
//
// Thread safety: pure functions.
// Cost: linear in vertices and edges, except that a vertex without a dispatch gives each of its
// followers all that it follows.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace uptempo::hip {

struct GraphVertex {
  std::vector<size_t> after;  // vertices that it follows directly; more than once has no effect
  bool is_dispatch = true;    // false: it only passes on its order
};

struct GraphStep {
  size_t vertex;
  std::vector<size_t> after;  // earlier steps that it follows directly, ascending
};

// The steps of the vertices with a dispatch, in order. Throws Error for a cycle.
std::vector<GraphStep> order_graph(std::span<const GraphVertex> vertices);

}  // namespace uptempo::hip
