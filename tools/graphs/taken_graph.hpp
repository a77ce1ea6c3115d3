// A HIP graph that Uptempo launches: imported as a Recording (engine/hip/graph.hpp) and replayed in
// order with HIP's streams.
//
// Queues: each device has a few, each with a lock. The launches of a stream use one queue. Launches
// of one graph follow each other: as long as one is in flight, the next uses its queue.
//
// Thread safety: one thread at a time per object; different objects in different threads.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include <uptempo/hip/api/hip_api.hpp>
#include <uptempo/hip/graph.hpp>
#include "tools/graphs/copy_ledger.hpp"

namespace uptempo::graphs {

class DeviceQueues;
struct LockedQueue;

// Nothing of the launch was submitted; HIP can do it.
struct NotLaunched : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class TakenGraph {
 public:
  // For the calling thread's current device. Throws an exception that names what cannot be
  // imported.
  explicit TakenGraph(hipGraph_t graph);
  ~TakenGraph();
  TakenGraph(const TakenGraph&) = delete;
  TakenGraph& operator=(const TakenGraph&) = delete;

  // After the stream's earlier work and before its later work. Throws NotLaunched, or another
  // exception if the launch may be incomplete.
  void launch(hipStream_t stream);

  // Changes a node of the graph of the constructor. Throws Error.
  template <class Parameters>
  void set(hipGraphNode_t node, const Parameters& parameters) {
    graph_->set(name_of(node), parameters);
  }
  // Takes all parameters of `graph`, which HIP found to have the same nodes and edges. Throws.
  void update(hipGraph_t graph);

  size_t nodes() const noexcept { return nodes_.size(); }
  int device() const noexcept { return device_; }
  // Whether no launch is in flight. The destructor waits otherwise.
  bool is_idle() const noexcept;

 private:
  // The nodes and edges that HIP reports of a graph, by position.
  struct Shape {
    std::vector<hipGraphNodeType> types;
    std::vector<std::pair<size_t, size_t>> edges;
    friend bool operator==(const Shape&, const Shape&) = default;
  };

  static Shape shape_of(hipGraph_t graph, const std::vector<hipGraphNode_t>& nodes);
  void import(hipGraph_t graph);
  void take(hipGraphNode_t from, hipGraphNodeType type, hipGraphNode_t to,
            const CopyLedger::Snapshot& copies);
  hipGraphNode_t name_of(hipGraphNode_t node) const;

  int device_ = 0;
  DeviceQueues* queues_ = nullptr;
  std::vector<hipGraphNode_t> nodes_;  // as the program names them
  Shape shape_;
  std::optional<hip::Graph> graph_;
  // The imported graph's nodes by the program's names, if an update imported another graph.
  std::unordered_map<hipGraphNode_t, hipGraphNode_t> names_;
  // Replaced imports with launches in flight.
  std::vector<std::pair<hip::Graph, Completion>> replaced_;
  LockedQueue* last_queue_ = nullptr;
  Completion last_;
};

}  // namespace uptempo::graphs
