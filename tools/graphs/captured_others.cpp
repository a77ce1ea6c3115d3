// HIP's functions that begin and end captures, and those that add nodes to captured streams which
// HIP does not describe in full: their graphs stay with HIP.

#include <uptempo/hip/api/hip_api.hpp>
#include "tools/graphs/captured_call.hpp"
#include "tools/graphs/original.hpp"
#include "tools/graphs/symbol_name.hpp"

using namespace uptempo::graphs;

// A C++ function in all releases.
#define UPTEMPO_EXT_MODULE_LAUNCH                                                    \
  "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11" \
  "ihipEvent_tS6_j"

namespace {

template <class Call>
hipError_t begin(Call call) noexcept {
  const hipError_t status = call();
  if (status == hipSuccess) capture_begun();
  return status;
}

template <class Call>
hipError_t end(hipStream_t stream, Call call) noexcept {
  const bool ends = is_capturing(stream);
  const hipError_t status = call();
  if (ends) capture_ended();
  return status;
}

}  // namespace

extern "C" {

hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) {
  return begin([&] { return UPTEMPO_CALL(hipStreamBeginCapture, stream, mode); });
}

UPTEMPO_FUNCTION("hipStreamBeginCapture_spt", begin_capture_spt, hipStream_t stream,
                 hipStreamCaptureMode mode) {
  return begin([&] { return UPTEMPO_CALL_AS(begin_capture_spt, stream, mode); });
}

UPTEMPO_FUNCTION("hipStreamBeginCaptureToGraph", begin_capture_to_graph, hipStream_t stream,
                 hipGraph_t graph, const hipGraphNode_t* after, const void* edges, size_t count,
                 hipStreamCaptureMode mode) {
  return begin([&] {
    return UPTEMPO_CALL_AS(begin_capture_to_graph, stream, graph, after, edges, count, mode);
  });
}

hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph) {
  return end(stream, [&] { return UPTEMPO_CALL(hipStreamEndCapture, stream, graph); });
}

UPTEMPO_FUNCTION("hipStreamEndCapture_spt", end_capture_spt, hipStream_t stream,
                 hipGraph_t* graph) {
  return end(per_thread(stream), [&] { return UPTEMPO_CALL_AS(end_capture_spt, stream, graph); });
}

hipError_t hipMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                              size_t bytes, hipStream_t stream) {
  return follow_unknown("hipMemcpyPeerAsync", stream, [&] {
    return UPTEMPO_CALL(hipMemcpyPeerAsync, to, to_device, from, from_device, bytes, stream);
  });
}

hipError_t hipDrvMemcpy3DAsync(const HIP_MEMCPY3D* copy, hipStream_t stream) {
  return follow_unknown("hipDrvMemcpy3DAsync", stream,
                        [&] { return UPTEMPO_CALL(hipDrvMemcpy3DAsync, copy, stream); });
}

UPTEMPO_FUNCTION("hipMemcpy2DFromArrayAsync", from_array, void* to, size_t pitch, const void* array,
                 size_t x, size_t y, size_t width, size_t height, hipMemcpyKind kind,
                 hipStream_t stream) {
  return follow_unknown("hipMemcpy2DFromArrayAsync", stream, [&] {
    return UPTEMPO_CALL_AS(from_array, to, pitch, array, x, y, width, height, kind, stream);
  });
}

UPTEMPO_FUNCTION("hipMemcpy2DFromArrayAsync_spt", from_array_spt, void* to, size_t pitch,
                 const void* array, size_t x, size_t y, size_t width, size_t height,
                 hipMemcpyKind kind, hipStream_t stream) {
  return follow_unknown("hipMemcpy2DFromArrayAsync", per_thread(stream), [&] {
    return UPTEMPO_CALL_AS(from_array_spt, to, pitch, array, x, y, width, height, kind, stream);
  });
}

UPTEMPO_FUNCTION("hipMemcpy2DToArrayAsync", to_array, void* array, size_t x, size_t y,
                 const void* from, size_t pitch, size_t width, size_t height, hipMemcpyKind kind,
                 hipStream_t stream) {
  return follow_unknown("hipMemcpy2DToArrayAsync", stream, [&] {
    return UPTEMPO_CALL_AS(to_array, array, x, y, from, pitch, width, height, kind, stream);
  });
}

UPTEMPO_FUNCTION("hipMemcpy2DToArrayAsync_spt", to_array_spt, void* array, size_t x, size_t y,
                 const void* from, size_t pitch, size_t width, size_t height, hipMemcpyKind kind,
                 hipStream_t stream) {
  return follow_unknown("hipMemcpy2DToArrayAsync", per_thread(stream), [&] {
    return UPTEMPO_CALL_AS(to_array_spt, array, x, y, from, pitch, width, height, kind, stream);
  });
}

UPTEMPO_FUNCTION("hipMemcpyAtoHAsync", array_to_host, void* to, void* array, size_t offset,
                 size_t bytes, hipStream_t stream) {
  return follow_unknown("hipMemcpyAtoHAsync", stream, [&] {
    return UPTEMPO_CALL_AS(array_to_host, to, array, offset, bytes, stream);
  });
}

UPTEMPO_FUNCTION("hipMemcpyHtoAAsync", host_to_array, void* array, size_t offset, const void* from,
                 size_t bytes, hipStream_t stream) {
  return follow_unknown("hipMemcpyHtoAAsync", stream, [&] {
    return UPTEMPO_CALL_AS(host_to_array, array, offset, from, bytes, stream);
  });
}

// hipMemsetParams have no depth.
hipError_t hipMemset3DAsync(hipPitchedPtr memory, int value, hipExtent extent, hipStream_t stream) {
  return follow_unknown("hipMemset3DAsync", stream, [&] {
    return UPTEMPO_CALL(hipMemset3DAsync, memory, value, extent, stream);
  });
}

UPTEMPO_FUNCTION("hipMemset3DAsync_spt", memset_3d_spt, hipPitchedPtr memory, int value,
                 hipExtent extent, hipStream_t stream) {
  return follow_unknown("hipMemset3DAsync", per_thread(stream), [&] {
    return UPTEMPO_CALL_AS(memset_3d_spt, memory, value, extent, stream);
  });
}

// The node has no trace of the event that the kernel's end records.
hipError_t hipExtLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                              size_t shared_bytes, hipStream_t stream, hipEvent_t start,
                              hipEvent_t stop, int flags) {
  return follow_unknown("hipExtLaunchKernel", stream, [&] {
    return UPTEMPO_CALL(hipExtLaunchKernel, function, grid, block, arguments, shared_bytes, stream,
                        start, stop, flags);
  });
}

UPTEMPO_FUNCTION(UPTEMPO_EXT_MODULE_LAUNCH, module_launch, hipFunction_t function, uint32_t x,
                 uint32_t y, uint32_t z, uint32_t block_x, uint32_t block_y, uint32_t block_z,
                 size_t shared_bytes, hipStream_t stream, void** arguments, void** extra,
                 hipEvent_t start, hipEvent_t stop, uint32_t flags) {
  return follow_unknown("hipExtModuleLaunchKernel", stream, [&] {
    return UPTEMPO_CALL_AS(module_launch, function, x, y, z, block_x, block_y, block_z,
                           shared_bytes, stream, arguments, extra, start, stop, flags);
  });
}

// The node does not say that its workgroups must run at the same time.
UPTEMPO_FUNCTION("hipLaunchCooperativeKernel", cooperative, const void* function, dim3 grid,
                 dim3 block, void** arguments, unsigned int shared_bytes, hipStream_t stream) {
  return follow_unknown("hipLaunchCooperativeKernel", stream, [&] {
    return UPTEMPO_CALL_AS(cooperative, function, grid, block, arguments, shared_bytes, stream);
  });
}

UPTEMPO_FUNCTION("hipLaunchCooperativeKernel_spt", cooperative_spt, const void* function, dim3 grid,
                 dim3 block, void** arguments, uint32_t shared_bytes, hipStream_t stream) {
  return follow_unknown("hipLaunchCooperativeKernel", per_thread(stream), [&] {
    return UPTEMPO_CALL_AS(cooperative_spt, function, grid, block, arguments, shared_bytes, stream);
  });
}

UPTEMPO_FUNCTION("hipModuleLaunchCooperativeKernel", module_cooperative, hipFunction_t function,
                 uint32_t x, uint32_t y, uint32_t z, uint32_t block_x, uint32_t block_y,
                 uint32_t block_z, uint32_t shared_bytes, hipStream_t stream, void** arguments) {
  return follow_unknown("hipModuleLaunchCooperativeKernel", stream, [&] {
    return UPTEMPO_CALL_AS(module_cooperative, function, x, y, z, block_x, block_y, block_z,
                           shared_bytes, stream, arguments);
  });
}

}  // extern "C"
