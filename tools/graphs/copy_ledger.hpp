// The parameters of copy nodes, as the program gave them. HIP does not return those of every kind
// of copy: hipGraphMemcpyNodeGetParams of HIP 5.2 reads beyond the node of a linear copy.
//
// A node that this library did not see being added is not in the ledger, so that its graph stays
// with HIP. Nodes of other kinds are in the ledger only if HIP does not return all about them.
//
// Thread safety: any thread; one lock. Memory: an entry for each copy node that was not destroyed.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <uptempo/hip/api/hip_api.hpp>

namespace uptempo::graphs {

// Whether the node copies memory. Newer releases have more kinds than the header that this library
// was compiled with, so every unknown kind counts.
bool is_copy(hipGraphNodeType type) noexcept;

// Nodes of a graph in HIP's order. Empty if HIP refuses.
std::vector<hipGraphNode_t> nodes_of(hipGraph_t graph);
std::optional<hipGraphNodeType> type_of(hipGraphNode_t node);
// The graph within a node. Null for other nodes.
hipGraph_t child_of(hipGraphNode_t node);

class CopyLedger {
 public:
  // The ledger of the process. Never destroyed, because programs call HIP while they end.
  static CopyLedger& instance();

  void record(hipGraphNode_t node, const hipMemcpy3DParms& copy);
  // A node of any kind that this library cannot describe. Its graph stays with HIP.
  void record_unknown(hipGraphNode_t node, std::string why);
  void forget(hipGraphNode_t node);
  // Before the graph is destroyed: forgets its nodes and those of its child graphs.
  void forget_graph(hipGraph_t graph);
  // After HIP copied a graph into a clone or a child node: enters the copied nodes.
  void copied(hipGraph_t from, hipGraph_t to);
  // From now on every graph with copies stays with HIP, because a copy could not be followed.
  void lose_track(std::string why);

  // The copies of one graph and its child graphs at one time.
  class Snapshot {
   public:
    // The parameters, which live as long as the snapshot. Null if unknown.
    const hipMemcpy3DParms* find(hipGraphNode_t node) const;
    // Why the graph cannot be imported. Empty if all copies are known.
    const std::string& problem() const { return problem_; }

   private:
    friend class CopyLedger;
    std::unordered_map<hipGraphNode_t, hipMemcpy3DParms> copies_;
    std::string problem_;
  };
  Snapshot snapshot(hipGraph_t graph);

 private:
  struct Entry {
    hipMemcpy3DParms copy{};
    std::string unknown;  // why the parameters are not known
  };

  void add_to(Snapshot& snapshot, hipGraph_t graph);
  void set(hipGraphNode_t node, Entry entry);

  std::mutex mutex_;
  std::unordered_map<hipGraphNode_t, Entry> entries_;
  std::string lost_;
};

}  // namespace uptempo::graphs
