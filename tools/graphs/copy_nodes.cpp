// HIP's functions that add, change, copy and destroy nodes of graphs: each calls HIP's own and
// keeps the ledger of copies.

#include <uptempo/hip/api/hip_api.hpp>
#include "tools/graphs/copy_ledger.hpp"
#include "tools/graphs/copy_params.hpp"
#include "tools/graphs/guarded.hpp"
#include "tools/graphs/original.hpp"
#include "tools/graphs/symbol_copies.hpp"
#include "tools/graphs/symbol_name.hpp"

using namespace uptempo::graphs;

namespace {

CopyLedger& ledger() { return CopyLedger::instance(); }

// Returns HIP's status after `body`, which runs if it is success.
template <class Body>
hipError_t then(hipError_t status, Body body) noexcept {
  if (status == hipSuccess)
    guarded([&] {
      const KeepLastError keep;
      body();
    });
  return status;
}

void unknown(hipGraphNode_t node, const char* function) {
  ledger().record_unknown(
      node, std::string("the parameters that ") + function + " gave a node are not read");
}

// Enters a copy of the driver interface. `given`: the parameters before HIP's call.
void enter_driver_copy(hipGraphNode_t node, const std::optional<hipMemcpy3DParms>& given,
                       const char* function) {
  if (given) {
    ledger().record(node, *given);
  } else {
    ledger().record_unknown(node, std::string(function) + ": " + kUnreadDriverCopy);
  }
}

}  // namespace

extern "C" {

hipError_t hipGraphAddMemcpyNode(hipGraphNode_t* node, hipGraph_t graph,
                                 const hipGraphNode_t* after, size_t count,
                                 const hipMemcpy3DParms* copy) {
  return then(UPTEMPO_CALL(hipGraphAddMemcpyNode, node, graph, after, count, copy),
              [&] { ledger().record(*node, *copy); });
}

hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t* node, hipGraph_t graph,
                                   const hipGraphNode_t* after, size_t count, void* to,
                                   const void* from, size_t bytes, hipMemcpyKind kind) {
  return then(
      UPTEMPO_CALL(hipGraphAddMemcpyNode1D, node, graph, after, count, to, from, bytes, kind),
      [&] { ledger().record(*node, line(to, from, bytes, kind)); });
}

hipError_t hipGraphAddMemcpyNodeToSymbol(hipGraphNode_t* node, hipGraph_t graph,
                                         const hipGraphNode_t* after, size_t count,
                                         const void* symbol, const void* from, size_t bytes,
                                         size_t offset, hipMemcpyKind kind) {
  return then(UPTEMPO_CALL(hipGraphAddMemcpyNodeToSymbol, node, graph, after, count, symbol, from,
                           bytes, offset, kind),
              [&] { enter(*node, copy_to_symbol(symbol, from, bytes, offset, kind)); });
}

hipError_t hipGraphAddMemcpyNodeFromSymbol(hipGraphNode_t* node, hipGraph_t graph,
                                           const hipGraphNode_t* after, size_t count, void* to,
                                           const void* symbol, size_t bytes, size_t offset,
                                           hipMemcpyKind kind) {
  return then(UPTEMPO_CALL(hipGraphAddMemcpyNodeFromSymbol, node, graph, after, count, to, symbol,
                           bytes, offset, kind),
              [&] { enter(*node, copy_from_symbol(to, symbol, bytes, offset, kind)); });
}

UPTEMPO_FUNCTION("hipDrvGraphAddMemcpyNode", add_driver_copy, hipGraphNode_t* node,
                 hipGraph_t graph, const hipGraphNode_t* after, size_t count,
                 const HIP_MEMCPY3D* copy, hipCtx_t context) {
  const auto given = driver_copy(copy);
  return then(UPTEMPO_CALL_AS(add_driver_copy, node, graph, after, count, copy, context),
              [&] { enter_driver_copy(*node, given, "hipDrvGraphAddMemcpyNode"); });
}

UPTEMPO_FUNCTION("hipGraphAddNode", add_node, hipGraphNode_t* node, hipGraph_t graph,
                 const hipGraphNode_t* after, size_t count, void* parameters) {
  return then(UPTEMPO_CALL_AS(add_node, node, graph, after, count, parameters), [&] {
    if (const auto type = type_of(*node); !type || is_copy(*type))
      unknown(*node, "hipGraphAddNode");
  });
}

hipError_t hipGraphMemcpyNodeSetParams(hipGraphNode_t node, const hipMemcpy3DParms* copy) {
  return then(UPTEMPO_CALL(hipGraphMemcpyNodeSetParams, node, copy),
              [&] { ledger().record(node, *copy); });
}

hipError_t hipGraphMemcpyNodeSetParams1D(hipGraphNode_t node, void* to, const void* from,
                                         size_t bytes, hipMemcpyKind kind) {
  return then(UPTEMPO_CALL(hipGraphMemcpyNodeSetParams1D, node, to, from, bytes, kind),
              [&] { ledger().record(node, line(to, from, bytes, kind)); });
}

hipError_t hipGraphMemcpyNodeSetParamsToSymbol(hipGraphNode_t node, const void* symbol,
                                               const void* from, size_t bytes, size_t offset,
                                               hipMemcpyKind kind) {
  return then(
      UPTEMPO_CALL(hipGraphMemcpyNodeSetParamsToSymbol, node, symbol, from, bytes, offset, kind),
      [&] { enter(node, copy_to_symbol(symbol, from, bytes, offset, kind)); });
}

hipError_t hipGraphMemcpyNodeSetParamsFromSymbol(hipGraphNode_t node, void* to, const void* symbol,
                                                 size_t bytes, size_t offset, hipMemcpyKind kind) {
  return then(
      UPTEMPO_CALL(hipGraphMemcpyNodeSetParamsFromSymbol, node, to, symbol, bytes, offset, kind),
      [&] { enter(node, copy_from_symbol(to, symbol, bytes, offset, kind)); });
}

UPTEMPO_FUNCTION("hipDrvGraphMemcpyNodeSetParams", set_driver_copy, hipGraphNode_t node,
                 const HIP_MEMCPY3D* copy) {
  const auto given = driver_copy(copy);
  return then(UPTEMPO_CALL_AS(set_driver_copy, node, copy),
              [&] { enter_driver_copy(node, given, "hipDrvGraphMemcpyNodeSetParams"); });
}

UPTEMPO_FUNCTION("hipGraphNodeSetParams", set_node, hipGraphNode_t node, void* parameters) {
  return then(UPTEMPO_CALL_AS(set_node, node, parameters), [&] {
    if (const auto type = type_of(node); !type || is_copy(*type))
      unknown(node, "hipGraphNodeSetParams");
  });
}

// Attributes: a cooperative kernel, a window of the cache, a priority.
UPTEMPO_FUNCTION("hipGraphKernelNodeSetAttribute", set_attribute, hipGraphNode_t node,
                 int attribute, const void* value) {
  return then(UPTEMPO_CALL_AS(set_attribute, node, attribute, value),
              [&] { unknown(node, "hipGraphKernelNodeSetAttribute"); });
}

UPTEMPO_FUNCTION("hipGraphKernelNodeCopyAttributes", copy_attributes, hipGraphNode_t from,
                 hipGraphNode_t to) {
  return then(UPTEMPO_CALL_AS(copy_attributes, from, to),
              [&] { unknown(to, "hipGraphKernelNodeCopyAttributes"); });
}

hipError_t hipGraphClone(hipGraph_t* clone, hipGraph_t graph) {
  return then(UPTEMPO_CALL(hipGraphClone, clone, graph), [&] { ledger().copied(graph, *clone); });
}

hipError_t hipGraphAddChildGraphNode(hipGraphNode_t* node, hipGraph_t graph,
                                     const hipGraphNode_t* after, size_t count, hipGraph_t child) {
  return then(UPTEMPO_CALL(hipGraphAddChildGraphNode, node, graph, after, count, child),
              [&] { ledger().copied(child, child_of(*node)); });
}

hipError_t hipGraphDestroyNode(hipGraphNode_t node) {
  guarded([&] {
    const KeepLastError keep;
    if (const hipGraph_t child = child_of(node); child != nullptr) ledger().forget_graph(child);
    ledger().forget(node);
  });
  return UPTEMPO_CALL(hipGraphDestroyNode, node);
}

hipError_t hipGraphDestroy(hipGraph_t graph) {
  guarded([&] {
    const KeepLastError keep;
    ledger().forget_graph(graph);
  });
  return UPTEMPO_CALL(hipGraphDestroy, graph);
}

}  // extern "C"
