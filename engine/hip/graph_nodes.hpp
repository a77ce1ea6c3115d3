// Reads the nodes, edges and parameters of a hipGraph_t. Private to engine/hip.
//
// Child graphs are read in place: each becomes a vertex before its nodes and one after them, which
// only pass on their order. So do empty nodes.
//
// Thread safety: as HIP's graph functions: no other thread may change the graph.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <uptempo/hip/api/hip_api.hpp>
#include <uptempo/hip/graph/graph_order.hpp>
#include <uptempo/hip/graph_text.hpp>

namespace uptempo::hip {

enum class GraphWork : uint8_t { none, kernel, copy, fill, event_wait, event_record };

// Whether the work is a dispatch. The others only pass on their order.
constexpr bool is_dispatch(GraphWork work) noexcept {
  return work == GraphWork::kernel || work == GraphWork::copy || work == GraphWork::fill;
}

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

// Throws Error, which names node and kind, for a type of nodes that are not imported.
void require_imported(hipGraphNodeType type, const std::string& node);

// Throws Error for a node that cannot be imported, by name and kind.
ReadGraph read_graph(hipGraph_t graph);

using CopyOfNode = std::function<const hipMemcpy3DParms*(hipGraphNode_t)>;

// Events that a replay waits for before its first dispatch, and that it records before its first or
// after its last one.
struct GraphEvents {
  std::vector<hipEvent_t> waits, records_before, records_after;
};

// Throws Error for an event record node between dispatches.
GraphEvents events_of(const ReadGraph& graph);

// The parameters of a node. Throw Error.
hipKernelNodeParams kernel_parameters(const GraphNode& node);
// `text`: of the graph or of the graph around it.
hipMemsetParams fill_parameters(const GraphNode& node, GraphText& text);
// `copy_of_node`: asked first, may be empty. Throws Error if neither it nor HIP tells them.
hipMemcpy3DParms copy_parameters(const GraphNode& node, const CopyOfNode& copy_of_node,
                                 GraphText& text);

}  // namespace uptempo::hip
