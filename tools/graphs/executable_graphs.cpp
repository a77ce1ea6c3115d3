// HIP's functions that make, launch, change and destroy executable graphs. HIP's own function runs
// for each of them except a launch that was taken over.

#include <string>

#include <uptempo/hip/api/hip_api.hpp>
#include "tools/graphs/call_times.hpp"
#include "tools/graphs/copy_params.hpp"
#include "tools/graphs/original.hpp"
#include "tools/graphs/symbol_copies.hpp"
#include "tools/graphs/symbol_name.hpp"
#include "tools/graphs/takeover.hpp"

using namespace uptempo::graphs;

namespace {

Takeover& takeover() { return Takeover::instance(); }

// hipGraphInstantiateFlagDeviceLaunch, which HIP 5 does not have.
constexpr unsigned long long kDeviceLaunch = 4;

const char* refusal_of(unsigned long long flags) noexcept {
  return (flags & kDeviceLaunch) != 0 ? "instantiated for launches by the device" : "";
}

// `real` calls HIP's function. `refusal`: as Takeover::instantiated().
template <class Real>
hipError_t instantiate(hipGraphExec_t* executable, hipGraph_t graph, const char* refusal,
                       Real real) noexcept {
  const Stopwatch watch;
  const hipError_t status = real();
  if (status == hipSuccess) takeover().instantiated(*executable, graph, refusal, watch.read());
  return status;
}

template <class Parameters>
hipError_t after_change(hipError_t status, hipGraphExec_t executable, hipGraphNode_t node,
                        const Parameters& parameters) noexcept {
  if (status == hipSuccess) takeover().set(executable, node, parameters);
  return status;
}

hipError_t after_change(hipError_t status, hipGraphExec_t executable,
                        const char* function) noexcept {
  if (status == hipSuccess)
    takeover().leave(executable, std::string(function) + " has no counterpart in Uptempo");
  return status;
}

// `unknown`: why there are no parameters.
hipError_t after_copy(hipError_t status, hipGraphExec_t executable, hipGraphNode_t node,
                      const std::optional<hipMemcpy3DParms>& copy, const char* unknown) noexcept {
  if (status != hipSuccess) return status;
  if (copy) {
    takeover().set(executable, node, *copy);
  } else {
    takeover().leave(executable, unknown);
  }
  return status;
}

hipError_t after_symbol(hipError_t status, hipGraphExec_t executable, hipGraphNode_t node,
                        const std::optional<hipMemcpy3DParms>& copy) noexcept {
  return after_copy(status, executable, node, copy,
                    "HIP did not return the address of a device variable");
}

hipError_t launch(hipGraphExec_t executable, hipStream_t stream, hipStream_t real_stream,
                  hipError_t (*real)(hipGraphExec_t, hipStream_t)) noexcept {
  if (const auto status = takeover().launch(executable, real_stream)) return *status;
  const Stopwatch watch;
  const hipError_t status = call_original(real, executable, stream);
  if (status == hipSuccess) takeover().launched_by_hip(executable, watch.read());
  return status;
}

}  // namespace

extern "C" {

hipError_t hipGraphInstantiate(hipGraphExec_t* executable, hipGraph_t graph, hipGraphNode_t* node,
                               char* log, size_t log_bytes) {
  return instantiate(executable, graph, "", [&] {
    return UPTEMPO_CALL(hipGraphInstantiate, executable, graph, node, log, log_bytes);
  });
}

hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* executable, hipGraph_t graph,
                                        unsigned long long flags) {
  return instantiate(executable, graph, refusal_of(flags), [&] {
    return UPTEMPO_CALL(hipGraphInstantiateWithFlags, executable, graph, flags);
  });
}

UPTEMPO_FUNCTION("hipGraphInstantiateWithParams", instantiate_with_params,
                 hipGraphExec_t* executable, hipGraph_t graph, void* parameters) {
  // hipGraphInstantiateParams begin with the flags of hipGraphInstantiateWithFlags.
  const auto* const flags = static_cast<const unsigned long long*>(parameters);
  return instantiate(executable, graph, flags == nullptr ? "" : refusal_of(*flags), [&] {
    return UPTEMPO_CALL_AS(instantiate_with_params, executable, graph, parameters);
  });
}

hipError_t hipGraphLaunch(hipGraphExec_t executable, hipStream_t stream) {
  return launch(executable, stream, stream, UPTEMPO_ORIGINAL(hipGraphLaunch));
}

UPTEMPO_FUNCTION("hipGraphLaunch_spt", launch_spt, hipGraphExec_t executable, hipStream_t stream) {
  return launch(executable, stream, stream == nullptr ? hipStreamPerThread : stream,
                UPTEMPO_REPLACED(launch_spt));
}

hipError_t hipGraphExecDestroy(hipGraphExec_t executable) {
  takeover().destroyed(executable);
  return UPTEMPO_CALL(hipGraphExecDestroy, executable);
}

hipError_t hipGraphExecUpdate(hipGraphExec_t executable, hipGraph_t graph, hipGraphNode_t* node,
                              hipGraphExecUpdateResult* result) {
  const hipError_t status = UPTEMPO_CALL(hipGraphExecUpdate, executable, graph, node, result);
  if (status == hipSuccess) {
    takeover().updated(executable, graph);
  } else {
    // HIP compares and changes node by node, so it may have changed some before the failure.
    takeover().leave(executable, "a hipGraphExecUpdate failed");
  }
  return status;
}

hipError_t hipGraphExecKernelNodeSetParams(hipGraphExec_t executable, hipGraphNode_t node,
                                           const hipKernelNodeParams* parameters) {
  const hipError_t status =
      UPTEMPO_CALL(hipGraphExecKernelNodeSetParams, executable, node, parameters);
  return status == hipSuccess ? after_change(status, executable, node, *parameters) : status;
}

hipError_t hipGraphExecMemsetNodeSetParams(hipGraphExec_t executable, hipGraphNode_t node,
                                           const hipMemsetParams* parameters) {
  const hipError_t status =
      UPTEMPO_CALL(hipGraphExecMemsetNodeSetParams, executable, node, parameters);
  return status == hipSuccess ? after_change(status, executable, node, *parameters) : status;
}

UPTEMPO_FUNCTION("hipGraphExecMemcpyNodeSetParams", exec_set_copy, hipGraphExec_t executable,
                 hipGraphNode_t node, const hipMemcpy3DParms* copy) {
  const hipError_t status = UPTEMPO_CALL_AS(exec_set_copy, executable, node, copy);
  return status == hipSuccess ? after_change(status, executable, node, *copy) : status;
}

hipError_t hipGraphExecMemcpyNodeSetParams1D(hipGraphExec_t executable, hipGraphNode_t node,
                                             void* to, const void* from, size_t bytes,
                                             hipMemcpyKind kind) {
  return after_change(
      UPTEMPO_CALL(hipGraphExecMemcpyNodeSetParams1D, executable, node, to, from, bytes, kind),
      executable, node, line(to, from, bytes, kind));
}

hipError_t hipGraphExecMemcpyNodeSetParamsToSymbol(hipGraphExec_t executable, hipGraphNode_t node,
                                                   const void* symbol, const void* from,
                                                   size_t bytes, size_t offset,
                                                   hipMemcpyKind kind) {
  const hipError_t status = UPTEMPO_CALL(hipGraphExecMemcpyNodeSetParamsToSymbol, executable, node,
                                         symbol, from, bytes, offset, kind);
  if (status != hipSuccess) return status;
  return after_symbol(status, executable, node, copy_to_symbol(symbol, from, bytes, offset, kind));
}

hipError_t hipGraphExecMemcpyNodeSetParamsFromSymbol(hipGraphExec_t executable, hipGraphNode_t node,
                                                     void* to, const void* symbol, size_t bytes,
                                                     size_t offset, hipMemcpyKind kind) {
  const hipError_t status = UPTEMPO_CALL(hipGraphExecMemcpyNodeSetParamsFromSymbol, executable,
                                         node, to, symbol, bytes, offset, kind);
  if (status != hipSuccess) return status;
  return after_symbol(status, executable, node, copy_from_symbol(to, symbol, bytes, offset, kind));
}

hipError_t hipGraphExecHostNodeSetParams(hipGraphExec_t executable, hipGraphNode_t node,
                                         const hipHostNodeParams* parameters) {
  return after_change(UPTEMPO_CALL(hipGraphExecHostNodeSetParams, executable, node, parameters),
                      executable, "hipGraphExecHostNodeSetParams");
}

hipError_t hipGraphExecChildGraphNodeSetParams(hipGraphExec_t executable, hipGraphNode_t node,
                                               hipGraph_t child) {
  return after_change(UPTEMPO_CALL(hipGraphExecChildGraphNodeSetParams, executable, node, child),
                      executable, "hipGraphExecChildGraphNodeSetParams");
}

hipError_t hipGraphExecEventRecordNodeSetEvent(hipGraphExec_t executable, hipGraphNode_t node,
                                               hipEvent_t event) {
  return after_change(UPTEMPO_CALL(hipGraphExecEventRecordNodeSetEvent, executable, node, event),
                      executable, "hipGraphExecEventRecordNodeSetEvent");
}

hipError_t hipGraphExecEventWaitNodeSetEvent(hipGraphExec_t executable, hipGraphNode_t node,
                                             hipEvent_t event) {
  return after_change(UPTEMPO_CALL(hipGraphExecEventWaitNodeSetEvent, executable, node, event),
                      executable, "hipGraphExecEventWaitNodeSetEvent");
}

UPTEMPO_FUNCTION("hipGraphExecNodeSetParams", exec_set_node, hipGraphExec_t executable,
                 hipGraphNode_t node, void* parameters) {
  return after_change(UPTEMPO_CALL_AS(exec_set_node, executable, node, parameters), executable,
                      "hipGraphExecNodeSetParams");
}

UPTEMPO_FUNCTION("hipDrvGraphExecMemcpyNodeSetParams", exec_set_driver_copy,
                 hipGraphExec_t executable, hipGraphNode_t node, const HIP_MEMCPY3D* copy,
                 hipCtx_t context) {
  const auto given = driver_copy(copy);
  const hipError_t status = UPTEMPO_CALL_AS(exec_set_driver_copy, executable, node, copy, context);
  return after_copy(status, executable, node, given, kUnreadDriverCopy);
}

// HIP's HIP_MEMSET_NODE_PARAMS, which HIP 5 does not have.
struct DriverFill {
  void* dst;
  size_t pitch;
  unsigned int value;
  unsigned int element_size;
  size_t width;
  size_t height;
};
UPTEMPO_FUNCTION("hipDrvGraphExecMemsetNodeSetParams", exec_set_driver_fill,
                 hipGraphExec_t executable, hipGraphNode_t node, const DriverFill* fill,
                 hipCtx_t context) {
  const hipError_t status = UPTEMPO_CALL_AS(exec_set_driver_fill, executable, node, fill, context);
  if (status != hipSuccess) return status;
  hipMemsetParams parameters{};
  parameters.dst = fill->dst;
  parameters.elementSize = fill->element_size;
  parameters.height = fill->height;
  parameters.pitch = fill->pitch;
  parameters.value = fill->value;
  parameters.width = fill->width;
  return after_change(status, executable, node, parameters);
}

UPTEMPO_FUNCTION("hipGraphExecExternalSemaphoresSignalNodeSetParams", exec_signals,
                 hipGraphExec_t executable, hipGraphNode_t node, const void* parameters) {
  return after_change(UPTEMPO_CALL_AS(exec_signals, executable, node, parameters), executable,
                      "hipGraphExecExternalSemaphoresSignalNodeSetParams");
}

UPTEMPO_FUNCTION("hipGraphExecExternalSemaphoresWaitNodeSetParams", exec_waits,
                 hipGraphExec_t executable, hipGraphNode_t node, const void* parameters) {
  return after_change(UPTEMPO_CALL_AS(exec_waits, executable, node, parameters), executable,
                      "hipGraphExecExternalSemaphoresWaitNodeSetParams");
}

UPTEMPO_FUNCTION("hipGraphNodeSetEnabled", set_enabled, hipGraphExec_t executable,
                 hipGraphNode_t node, unsigned int enabled) {
  return after_change(UPTEMPO_CALL_AS(set_enabled, executable, node, enabled), executable,
                      "hipGraphNodeSetEnabled");
}

}  // extern "C"
