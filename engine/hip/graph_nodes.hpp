// Reads the nodes, edges and parameters of a hipGraph_t. Private to engine/hip.
//
// Child graphs are read in place: each becomes a vertex before its nodes and one after them, which
// only pass on their order. So do empty nodes.
//
// Thread safety: as HIP's graph functions: no other thread may change the graph.
#pragma once

#include <hip/hip_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/hip/graph/graph_order.hpp"

namespace uptempo::hip {

enum class GraphWork : uint8_t { none, kernel, copy, fill };

// Node of a graph or of a child graph.
struct GraphNode {
  hipGraphNode_t handle = nullptr;
  GraphWork work = GraphWork::none;
  bool tells_copy = true;  // a copy whose parameters HIP may tell
  std::string name{};      // "node 3 (memcpy)", "node 0 of the child graph of node 2 (kernel)"
};

struct ReadGraph {
  std::vector<GraphVertex> vertices;
  std::vector<GraphNode> nodes;  // of the vertices
};

// Throws Error for a node that cannot be imported, by name and kind.
ReadGraph read_graph(hipGraph_t graph);

using CopyOfNode = std::function<const hipMemcpy3DParms*(hipGraphNode_t)>;

// The parameters of a node. Throw Error.
hipKernelNodeParams kernel_parameters(const GraphNode& node);
hipMemsetParams fill_parameters(const GraphNode& node);
// `copy_of_node`: asked first, may be empty. Throws Error if neither it nor HIP tells them.
hipMemcpy3DParms copy_parameters(const GraphNode& node, const CopyOfNode& copy_of_node);

}  // namespace uptempo::hip
