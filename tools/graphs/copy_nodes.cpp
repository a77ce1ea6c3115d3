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

}  // namespace

extern "C" {

hipError_t hipGraphAddMemcpyNode(hipGraphNode_t* node, hipGraph_t graph,
                                 const hipGraphNode_t* after, size_t count,
                                 const hipMemcpy3DParms* copy) {
  static const auto real = UPTEMPO_ORIGINAL(hipGraphAddMemcpyNode);
  return then(call_original(real, node, graph, after, count, copy),
              [&] { ledger().record(*node, *copy); });
}

hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t* node, hipGraph_t graph,
                                   const hipGraphNode_t* after, size_t count, void* to,
                                   const void* from, size_t bytes, hipMemcpyKind kind) {
  static const auto real = UPTEMPO_ORIGINAL(hipGraphAddMemcpyNode1D);
  return then(call_original(real, node, graph, after, count, to, from, bytes, kind),
              [&] { ledger().record(*node, line(to, from, bytes, kind)); });
}

hipError_t hipGraphAddMemcpyNodeToSymbol(hipGraphNode_t* node, hipGraph_t graph,
                                         const hipGraphNode_t* after, size_t count,
                                         const void* symbol, const void* from, size_t bytes,
                                         size_t offset, hipMemcpyKind kind) {
  static const auto real = UPTEMPO_ORIGINAL(hipGraphAddMemcpyNodeToSymbol);
  return then(call_original(real, node, graph, after, count, symbol, from, bytes, offset, kind),
              [&] { enter(*node, copy_to_symbol(symbol, from, bytes, offset, kind)); });
}

hipError_t hipGraphAddMemcpyNodeFromSymbol(hipGraphNode_t* node, hipGraph_t graph,
                                           const hipGraphNode_t* after, size_t count, void* to,
                                           const void* symbol, size_t bytes, size_t offset,
                                           hipMemcpyKind kind) {
  static const auto real = UPTEMPO_ORIGINAL(hipGraphAddMemcpyNodeFromSymbol);
  return then(call_original(real, node, graph, after, count, to, symbol, bytes, offset, kind),
              [&] { enter(*node, copy_from_symbol(to, symbol, bytes, offset, kind)); });
}

UPTEMPO_FUNCTION("hipDrvGraphAddMemcpyNode", add_driver_copy, hipGraphNode_t* node,
                 hipGraph_t graph, const hipGraphNode_t* after, size_t count, const void* copy,
                 hipCtx_t context) {
  static const auto real = original<decltype(add_driver_copy)>("hipDrvGraphAddMemcpyNode");
  return then(call_original(real, node, graph, after, count, copy, context),
              [&] { unknown(*node, "hipDrvGraphAddMemcpyNode"); });
}

UPTEMPO_FUNCTION("hipGraphAddNode", add_node, hipGraphNode_t* node, hipGraph_t graph,
                 const hipGraphNode_t* after, size_t count, void* parameters) {
  static const auto real = original<decltype(add_node)>("hipGraphAddNode");
  return then(call_original(real, node, graph, after, count, parameters), [&] {
    if (const auto type = type_of(*node); !type || is_copy(*type))
      unknown(*node, "hipGraphAddNode");
  });
}

hipError_t hipGraphMemcpyNodeSetParams(hipGraphNode_t node, const hipMemcpy3DParms* copy) {
  static const auto real = UPTEMPO_ORIGINAL(hipGraphMemcpyNodeSetParams);
  return then(call_original(real, node, copy), [&] { ledger().record(node, *copy); });
}

hipError_t hipGraphMemcpyNodeSetParams1D(hipGraphNode_t node, void* to, const void* from,
                                         size_t bytes, hipMemcpyKind kind) {
  static const auto real = UPTEMPO_ORIGINAL(hipGraphMemcpyNodeSetParams1D);
  return then(call_original(real, node, to, from, bytes, kind),
              [&] { ledger().record(node, line(to, from, bytes, kind)); });
}

hipError_t hipGraphMemcpyNodeSetParamsToSymbol(hipGraphNode_t node, const void* symbol,
                                               const void* from, size_t bytes, size_t offset,
                                               hipMemcpyKind kind) {
  static const auto real = UPTEMPO_ORIGINAL(hipGraphMemcpyNodeSetParamsToSymbol);
  return then(call_original(real, node, symbol, from, bytes, offset, kind),
              [&] { enter(node, copy_to_symbol(symbol, from, bytes, offset, kind)); });
}

hipError_t hipGraphMemcpyNodeSetParamsFromSymbol(hipGraphNode_t node, void* to, const void* symbol,
                                                 size_t bytes, size_t offset, hipMemcpyKind kind) {
  static const auto real = UPTEMPO_ORIGINAL(hipGraphMemcpyNodeSetParamsFromSymbol);
  return then(call_original(real, node, to, symbol, bytes, offset, kind),
              [&] { enter(node, copy_from_symbol(to, symbol, bytes, offset, kind)); });
}

UPTEMPO_FUNCTION("hipDrvGraphMemcpyNodeSetParams", set_driver_copy, hipGraphNode_t node,
                 const void* copy) {
  static const auto real = original<decltype(set_driver_copy)>("hipDrvGraphMemcpyNodeSetParams");
  return then(call_original(real, node, copy),
              [&] { unknown(node, "hipDrvGraphMemcpyNodeSetParams"); });
}

UPTEMPO_FUNCTION("hipGraphNodeSetParams", set_node, hipGraphNode_t node, void* parameters) {
  static const auto real = original<decltype(set_node)>("hipGraphNodeSetParams");
  return then(call_original(real, node, parameters), [&] {
    if (const auto type = type_of(node); !type || is_copy(*type))
      unknown(node, "hipGraphNodeSetParams");
  });
}

// Attributes: a cooperative kernel, a window of the cache, a priority.
UPTEMPO_FUNCTION("hipGraphKernelNodeSetAttribute", set_attribute, hipGraphNode_t node,
                 int attribute, const void* value) {
  static const auto real = original<decltype(set_attribute)>("hipGraphKernelNodeSetAttribute");
  return then(call_original(real, node, attribute, value),
              [&] { unknown(node, "hipGraphKernelNodeSetAttribute"); });
}

UPTEMPO_FUNCTION("hipGraphKernelNodeCopyAttributes", copy_attributes, hipGraphNode_t from,
                 hipGraphNode_t to) {
  static const auto real = original<decltype(copy_attributes)>("hipGraphKernelNodeCopyAttributes");
  return then(call_original(real, from, to),
              [&] { unknown(to, "hipGraphKernelNodeCopyAttributes"); });
}

hipError_t hipGraphClone(hipGraph_t* clone, hipGraph_t graph) {
  static const auto real = UPTEMPO_ORIGINAL(hipGraphClone);
  return then(call_original(real, clone, graph), [&] { ledger().copied(graph, *clone); });
}

hipError_t hipGraphAddChildGraphNode(hipGraphNode_t* node, hipGraph_t graph,
                                     const hipGraphNode_t* after, size_t count, hipGraph_t child) {
  static const auto real = UPTEMPO_ORIGINAL(hipGraphAddChildGraphNode);
  return then(call_original(real, node, graph, after, count, child),
              [&] { ledger().copied(child, child_of(*node)); });
}

hipError_t hipGraphDestroyNode(hipGraphNode_t node) {
  static const auto real = UPTEMPO_ORIGINAL(hipGraphDestroyNode);
  guarded([&] {
    const KeepLastError keep;
    if (const hipGraph_t child = child_of(node); child != nullptr) ledger().forget_graph(child);
    ledger().forget(node);
  });
  return call_original(real, node);
}

hipError_t hipGraphDestroy(hipGraph_t graph) {
  static const auto real = UPTEMPO_ORIGINAL(hipGraphDestroy);
  guarded([&] {
    const KeepLastError keep;
    ledger().forget_graph(graph);
  });
  return call_original(real, graph);
}

}  // extern "C"
