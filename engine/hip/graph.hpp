// Imports a HIP graph: a hipGraph_t becomes a Recording, which replays at the cost of copying its
// packets.
//
//   hipGraph_t graph;                          // built by nodes, or captured from streams
//   hip::Graph step = hip::import(queue, graph);
//   step.replay(queue);                        // instead of hipGraphLaunch
//   step.set(node, parameters);                // as hipGraphExecKernelNodeSetParams
//   step.replay(queue).wait();
//
// Nodes: kernel, memcpy, memset, empty, event and child-graph nodes. Each kernel, copy or fill is
// one dispatch; copies and fills are kernels (kernels/transfer.cl), so they need no copy engine.
// Empty nodes become part of the edges, child graphs are imported in place. All other nodes are
// refused by name: host nodes, memory nodes, cooperative launches.
//
// Events: a replay waits for the events of wait nodes, as recorded when it is called, before its
// first dispatch, so branches without the wait node wait, too. An event record node that follows no
// dispatch records before the first dispatch; one that no dispatch follows records after the last
// one. One between dispatches is refused: recorded after the last dispatch, it would tell a later
// time, and a graph that waits for work that waits for the event would hang. The events must exist
// until the last replay (wait.hpp). If an event cannot be recorded behind a replay on the device,
// the host waits for the replay, for 30 seconds at most, and tries again. If HIP refuses that, too,
// replay() throws its error, and the replay runs.
//
// Order: that of the graph's edges and no other. A dispatch has a barrier bit if a packet that it
// depends on may still run, and fences for what it depends on (Declaring::after). Nodes are
// dispatched by levels, so branches overlap. A replay is ordered with others of its queue as a
// batch is. HIP's streams are not part of that order: wait for them before a replay that needs
// their results, and let them wait for its Completion.
//
// Memory of copies and fills: device memory of the queue's agent, pinned, registered or managed
// host memory. Pageable host memory is pinned for the graph's life and accessed when the copy
// executes, as in HIP; it must be writable, also as a source. hipMemcpyKind is not read, because
// the addresses decide. Memory of another device and hipArrays are refused. All memory that nodes
// name, also in kernel arguments, must stay valid until the last replay has completed.
//
// Copies that HIP does not tell: copies with a symbol or a hipArray at an end, those of
// hipDrvGraphAddMemcpyNode and, where HIP has no hipGraphDebugDotPrint (5.2), those with one
// dimension (hipMemcpyAsync under capture, hipGraphAddMemcpyNode1D). They are refused by name
// unless ImportOptions::copy_of_node gives their parameters. HIP 5.7 and 6.4 tell the other copies
// only in the text of hipGraphDebugDotPrint: hipGraphMemcpyNodeGetParams succeeds for all of them,
// also with memory that HIP has not written. If a release writes another text, its copies are
// refused.
//
// Fills: widths count elements, as HIP documents. HIP 5.2 differs for several rows: it fills as
// many bytes of a row as the width, with the size of the elements instead of the value. A fill of
// several slices (hipMemset3DAsync under capture) is refused.
//
// Kernels: those of the current HIP device, which must be the queue's (kernel.hpp has the rules).
// An import reads the graph; later changes of the graph do not apply, and the graph may be
// destroyed. Its nodes' handles stay the names of the imported nodes. HIP may reuse a handle for
// another graph's node.
//
// Errors: import() and set() throw Error, which names the node, before they change anything.
// Thread safety: one owner at a time, as Recording. No other thread may change the HIP graph during
// import().
// Lifetime: that of a Recording. The destructor waits for replays in flight, then unpins.
// Cost: import() is for set-up. set() costs as Recording::set(), set_grid() or replace(), whichever
// suffices, and allocates. replay() is Recording::replay().
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include <uptempo/completion/completion.hpp>
#include <uptempo/dispatch/queue.hpp>
#include <uptempo/hip/api/hip_api.hpp>
#include <uptempo/hip/kernel.hpp>
#include <uptempo/recording/recording.hpp>

namespace uptempo::hip {

class GraphState;

struct ImportOptions {
  // By default, fences are only those that the edges need.
  RecordingOptions recording{};
  // Asked for each memcpy node: its parameters, which must be valid during import(); null: as HIP
  // tells them.
  std::function<const hipMemcpy3DParms*(hipGraphNode_t)> copy_of_node{};
  // Asked for each kernel node: selects one of several kernels of one name.
  std::function<Beside(hipGraphNode_t)> beside_of_node{};
  // The same by the node's function, also of a kernel that Graph::set() gives it. Used without
  // beside_of_node.
  std::function<Beside(const void*)> beside_of_function{};
  // Asked for each kernel node: its PrivateBytes, without which a kernel with a dynamic stack is
  // refused.
  std::function<PrivateBytes(hipGraphNode_t)> stack_of_node{};
};

class Graph {
 public:
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  // As Recording::replay(). A graph without dispatches completes with the queue's last submission.
  Completion replay(Queue& queue);
  Completion replay(Queue& queue, Deadline deadline);

  // Changes a node from the next replay on; replays in flight keep its old parameters. A kernel
  // node may get another kernel, and a copy another shape. Throws Error for a node that the graph
  // does not have or that is of another kind, and for parameters that import() would refuse; the
  // node is then unchanged.
  void set(hipGraphNode_t node, const hipKernelNodeParams& parameters);
  void set(hipGraphNode_t node, const hipMemcpy3DParms& parameters);
  void set(hipGraphNode_t node, const hipMemsetParams& parameters);
  // Changes one argument of a kernel node, which costs the least. As Recording::set().
  void set(hipGraphNode_t node, size_t argument, std::span<const std::byte> value);

  // The dispatch of a node in recording(), until set() changes the node's kernel, grid or shape.
  // Throws Error for a node without a dispatch.
  Node<Arguments> node(hipGraphNode_t node) const;
  // For plan(), explain() and replays() of the recording. Do not add or replace its nodes.
  Recording& recording() noexcept;
  size_t size() const noexcept;  // number of dispatches

 private:
  friend Graph import(Queue& queue, hipGraph_t graph, const ImportOptions& options);
  explicit Graph(std::unique_ptr<GraphState> state) noexcept;
  std::unique_ptr<GraphState> state_;
};

// For queues of this queue's agent. Throws Error.
Graph import(Queue& queue, hipGraph_t graph, const ImportOptions& options = {});

}  // namespace uptempo::hip
