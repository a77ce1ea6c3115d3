// The parameters of copies and fills in the text that HIP writes about a graph
// (hipGraphDebugDotPrint). Private to engine/hip.
//
// HIP 5.7 and 6.4 execute what the text says, but hipGraphMemcpyNodeGetParams and
// hipGraphMemsetNodeGetParams do not always return it, although they succeed:
// - for a copy with one dimension or with a symbol, memory that HIP has not written;
// - for hipDrvGraphAddMemcpyNode, the bytes of another structure;
// - for hipMemset3DAsync under capture (HIP 6), a fill without its slices.
// HIP 5.2 writes no text, and does not need it: those copies have node types of their own.
//
// The text is meant for people and may change with each release. A node counts only if its text has
// the form of these releases, from the first to the last character.
//
// Thread safety: as HIP's graph functions: no other thread may change the graph.
// Cost: the first question writes and reads the text of the whole graph, child graphs included.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <unordered_map>

#include <uptempo/hip/api/hip_api.hpp>

namespace uptempo::hip {

class GraphText {
 public:
  explicit GraphText(hipGraph_t graph) : graph_(graph) {}

  // Whether this release of HIP writes texts.
  static bool exists();
  // A copy between two addresses. Empty for copies with a symbol or an array at an end, and for
  // those that HIP does not describe. Throws Error if HIP refuses to write.
  std::optional<hipMemcpy3DParms> copy(hipGraphNode_t node);
  // The slices of a fill. Empty if HIP does not describe the node. Throws Error if HIP refuses to
  // write.
  std::optional<size_t> slices(hipGraphNode_t node);

 private:
  void read();
  void add_copy(std::string_view& text);
  void add_fill(std::string_view& text);

  hipGraph_t graph_;
  bool is_read_ = false;
  std::unordered_map<hipGraphNode_t, hipMemcpy3DParms> copies_;
  std::unordered_map<hipGraphNode_t, size_t> slices_;
};

}  // namespace uptempo::hip
