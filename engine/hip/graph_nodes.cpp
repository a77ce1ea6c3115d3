#include <uptempo/hip/graph_nodes.hpp>

#include <fmt/format.h>

#include <map>
#include <optional>

#include <uptempo/hip/graph/graph_error.hpp>
#include <uptempo/hip/status.hpp>

namespace uptempo::hip {
namespace {

// HIP does not limit the depth, but each level is a call deeper here.
constexpr uint32_t kDeepest = 64;

struct Kind {
  const char* name;
  GraphWork work = GraphWork::none;
  bool tells_copy = true;
  const char* refused = nullptr;  // what to do instead
};

constexpr const char* kOnStream =
    "end the graph before this node, and do its work on a stream or on the host between two graphs";

// Releases of HIP number the types differently, and not all have each of them.
template <class Type>
Kind kind_of(Type type) {
  const auto transfer = [](const char* name) {
    return Kind{.name = name, .work = GraphWork::copy, .tells_copy = false};
  };
  switch (type) {
    case hipGraphNodeTypeKernel:
      return {.name = "kernel", .work = GraphWork::kernel};
    case hipGraphNodeTypeMemcpy:
      return {.name = "memcpy", .work = GraphWork::copy};
    case hipGraphNodeTypeMemset:
      return {.name = "memset", .work = GraphWork::fill};
    case hipGraphNodeTypeEmpty:
      return {.name = "empty"};
    case hipGraphNodeTypeGraph:
      return {.name = "child graph"};
    case hipGraphNodeTypeHost:
      return {.name = "host", .refused = kOnStream};
    case hipGraphNodeTypeWaitEvent:
      return {.name = "event wait", .work = GraphWork::event_wait};
    case hipGraphNodeTypeEventRecord:
      return {.name = "event record", .work = GraphWork::event_record};
    case hipGraphNodeTypeMemcpyFromSymbol:
      return transfer("memcpy from symbol");
    case hipGraphNodeTypeMemcpyToSymbol:
      return transfer("memcpy to symbol");
    default:
      break;
  }
  if constexpr (requires { Type::hipGraphNodeTypeMemcpy1D; })
    if (type == Type::hipGraphNodeTypeMemcpy1D) return transfer("memcpy 1D");
  if constexpr (requires { Type::hipGraphNodeTypeMemAlloc; }) {
    if (type == Type::hipGraphNodeTypeMemAlloc)
      return {.name = "memory allocation", .refused = "allocate the memory before the graph"};
    if (type == Type::hipGraphNodeTypeMemFree)
      return {.name = "memory free", .refused = "free the memory after the graph"};
  }
  if constexpr (requires { Type::hipGraphNodeTypeExtSemaphoreSignal; })
    if (type == Type::hipGraphNodeTypeExtSemaphoreSignal ||
        type == Type::hipGraphNodeTypeExtSemaphoreWait)
      return {.name = "external semaphore", .refused = kOnStream};
  return {.name = "unknown", .refused = "import a graph of kernels, copies and fills"};
}

class Reader {
 public:
  explicit Reader(ReadGraph& read) : read_(read) {}

  // Adds the graph's vertices. Those without predecessors follow `before`, if it is given. Returns
  // the vertices that nothing follows.
  std::vector<size_t> add(hipGraph_t graph, std::optional<size_t> before, const std::string& place,
                          uint32_t depth) {
    if (depth > kDeepest)
      refuse_import("a graph", fmt::format("child graphs {} levels deep", depth),
                    fmt::format("nest at most {} child graphs", kDeepest));
    const std::vector<hipGraphNode_t> handles = nodes_of(graph);
    std::map<hipGraphNode_t, std::vector<hipGraphNode_t>> after;
    std::map<hipGraphNode_t, size_t> number;
    for (size_t i = 0; i < handles.size(); ++i) number[handles[i]] = i;
    std::vector<std::vector<size_t>> earlier(handles.size());
    std::vector<bool> is_followed(handles.size());
    for (const auto& [from, to] : edges_of(graph)) {
      earlier[number.at(to)].push_back(number.at(from));
      is_followed[number.at(from)] = true;
    }
    // A child graph's vertices are not known before it has been read, so edges are set afterwards.
    std::vector<size_t> first(handles.size()), last(handles.size());
    for (size_t i = 0; i < handles.size(); ++i) {
      std::tie(first[i], last[i]) = add_node(handles[i], fmt::format("node {}{}", i, place), depth);
    }
    std::vector<size_t> ends;
    for (size_t i = 0; i < handles.size(); ++i) {
      std::vector<size_t>& its = read_.vertices[first[i]].after;
      for (const size_t e : earlier[i]) its.push_back(last[e]);
      if (earlier[i].empty() && before) its.push_back(*before);
      if (!is_followed[i]) ends.push_back(last[i]);
    }
    return ends;
  }

 private:
  static std::vector<hipGraphNode_t> nodes_of(hipGraph_t graph) {
    size_t count = 0;
    check(hipGraphGetNodes(graph, nullptr, &count), "hipGraphGetNodes", "the nodes of a graph",
          "pass a graph that exists");
    std::vector<hipGraphNode_t> nodes(count);
    if (count != 0) check(hipGraphGetNodes(graph, nodes.data(), &count), "hipGraphGetNodes");
    nodes.resize(count);
    return nodes;
  }

  static std::vector<std::pair<hipGraphNode_t, hipGraphNode_t>> edges_of(hipGraph_t graph) {
    size_t count = 0;
    check(hipGraphGetEdges(graph, nullptr, nullptr, &count), "hipGraphGetEdges");
    std::vector<hipGraphNode_t> from(count), to(count);
    if (count != 0)
      check(hipGraphGetEdges(graph, from.data(), to.data(), &count), "hipGraphGetEdges");
    std::vector<std::pair<hipGraphNode_t, hipGraphNode_t>> edges(count);
    for (size_t i = 0; i < count; ++i) edges[i] = {from[i], to[i]};
    return edges;
  }

  size_t add_vertex(GraphNode node) {
    read_.vertices.push_back({.after = {}, .is_dispatch = is_dispatch(node.work)});
    read_.nodes.push_back(std::move(node));
    return read_.vertices.size() - 1;
  }

  // Returns the vertex that follows what the node follows, and the one that its followers follow.
  std::pair<size_t, size_t> add_node(hipGraphNode_t handle, const std::string& place,
                                     uint32_t depth) {
    hipGraphNodeType type{};
    check(hipGraphNodeGetType(handle, &type), "hipGraphNodeGetType", place);
    const Kind kind = kind_of(type);
    require_imported(type, place);
    const size_t vertex = add_vertex({.handle = handle,
                                      .work = kind.work,
                                      .tells_copy = kind.tells_copy,
                                      .name = fmt::format("{} ({})", place, kind.name)});
    if (type != hipGraphNodeTypeGraph) return {vertex, vertex};
    hipGraph_t child = nullptr;
    check(hipGraphChildGraphNodeGetGraph(handle, &child), "hipGraphChildGraphNodeGetGraph", place);
    std::vector<size_t> ends =
        add(child, vertex, fmt::format(" of the child graph of {}", place), depth + 1);
    const size_t end = add_vertex({.name = place});
    ends.push_back(vertex);  // of an empty child graph, nothing else is before its end
    read_.vertices[end].after = std::move(ends);
    return {vertex, end};
  }

  ReadGraph& read_;
};

}  // namespace

void require_imported(hipGraphNodeType type, const std::string& node) {
  const Kind kind = kind_of(type);
  if (kind.refused == nullptr) return;
  refuse_import(
      fmt::format("{} ({})", node, kind.name),
      fmt::format("{} nodes are not imported (type {})", kind.name, static_cast<int>(type)),
      kind.refused);
}

ReadGraph read_graph(hipGraph_t graph) {
  ReadGraph read;
  Reader(read).add(graph, {}, "", 0);
  return read;
}

namespace {

using Edges = std::vector<std::vector<size_t>>;

// Whether a path along these edges leads from the vertex to a dispatch.
bool leads_to_dispatch(const ReadGraph& graph, const Edges& edges, size_t vertex) {
  std::vector<bool> seen(edges.size());
  std::vector<size_t> todo = edges[vertex];
  while (!todo.empty()) {
    const size_t next = todo.back();
    todo.pop_back();
    if (seen[next]) continue;
    seen[next] = true;
    if (is_dispatch(graph.nodes[next].work)) return true;
    todo.insert(todo.end(), edges[next].begin(), edges[next].end());
  }
  return false;
}

}  // namespace

GraphEvents events_of(const ReadGraph& graph) {
  const size_t count = graph.nodes.size();
  Edges earlier(count), later(count);
  for (size_t vertex = 0; vertex < count; ++vertex) {
    earlier[vertex] = graph.vertices[vertex].after;
    for (const size_t before : earlier[vertex]) later[before].push_back(vertex);
  }
  GraphEvents events;
  for (size_t vertex = 0; vertex < count; ++vertex) {
    const GraphNode& node = graph.nodes[vertex];
    hipEvent_t event = nullptr;
    if (node.work == GraphWork::event_wait) {
      check(hipGraphEventWaitNodeGetEvent(node.handle, &event), "hipGraphEventWaitNodeGetEvent",
            node.name);
      events.waits.push_back(event);
    } else if (node.work == GraphWork::event_record) {
      check(hipGraphEventRecordNodeGetEvent(node.handle, &event), "hipGraphEventRecordNodeGetEvent",
            node.name);
      if (!leads_to_dispatch(graph, earlier, vertex)) {
        events.records_before.push_back(event);
      } else if (!leads_to_dispatch(graph, later, vertex)) {
        events.records_after.push_back(event);
      } else {
        refuse_import(node.name, "it is between two dispatches",
                      "record the event at the graph's begin or end, or divide the graph there");
      }
    }
  }
  return events;
}

hipKernelNodeParams kernel_parameters(const GraphNode& node) {
#if HIP_VERSION >= 50300000  // declared earlier, but not defined
  hipKernelNodeAttrValue value{};
  if (hipGraphKernelNodeGetAttribute(node.handle, hipKernelNodeAttributeCooperative, &value) !=
      hipSuccess) {
    (void)hipGetLastError();  // HIP reports an attribute that was never set as an error
  } else if (value.cooperative != 0) {
    refuse_import(node.name, "a cooperative launch", "launch it by HIP");
  }
#endif
  hipKernelNodeParams parameters{};
  check(hipGraphKernelNodeGetParams(node.handle, &parameters), "hipGraphKernelNodeGetParams",
        node.name);
  return parameters;
}

namespace {

// Whether every node of type hipGraphNodeTypeMemcpy is a copy that hipGraphMemcpyNodeGetParams
// describes: in HIP 5.2, which has types of their own for the others.
template <class Type>
constexpr bool has_own_types(Type /*of nodes*/) {
  return requires { Type::hipGraphNodeTypeMemcpy1D; };
}

}  // namespace

hipMemsetParams fill_parameters(const GraphNode& node, GraphText& text) {
  if (GraphText::exists()) {
    const std::optional<size_t> slices = text.slices(node.handle);
    if (slices != 1)
      refuse_import(node.name,
                    slices ? fmt::format("a fill of {} slices (hipMemset3DAsync)", *slices)
                           : "HIP does not describe this fill (hipGraphDebugDotPrint)",
                    "fill each slice with a node of its own");
  }
  hipMemsetParams parameters{};
  check(hipGraphMemsetNodeGetParams(node.handle, &parameters), "hipGraphMemsetNodeGetParams",
        node.name);
  return parameters;
}

hipMemcpy3DParms copy_parameters(const GraphNode& node, const CopyOfNode& copy_of_node,
                                 GraphText& text) {
  const hipMemcpy3DParms* const given = copy_of_node ? copy_of_node(node.handle) : nullptr;
  if (given != nullptr) return *given;
  if (node.tells_copy && has_own_types(hipGraphNodeTypeMemcpy)) {
    hipMemcpy3DParms parameters{};
    check(hipGraphMemcpyNodeGetParams(node.handle, &parameters), "hipGraphMemcpyNodeGetParams",
          node.name);
    return parameters;
  }
  if (node.tells_copy && GraphText::exists())
    if (const std::optional<hipMemcpy3DParms> copy = text.copy(node.handle)) return *copy;
  refuse_import(node.name,
                "HIP does not tell the parameters of this copy: it names a symbol or a hipArray, "
                "or was made by hipDrvGraphAddMemcpyNode, or, with a release of HIP without "
                "hipGraphDebugDotPrint, by hipMemcpyAsync or hipGraphAddMemcpyNode1D",
                "add it with hipGraphAddMemcpyNode, or give its parameters with "
                "ImportOptions::copy_of_node");
}

}  // namespace uptempo::hip
