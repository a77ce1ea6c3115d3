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
  static const auto real = UPTEMPO_ORIGINAL(hipStreamBeginCapture);
  return begin([&] { return call_original(real, stream, mode); });
}

UPTEMPO_FUNCTION("hipStreamBeginCapture_spt", begin_capture_spt, hipStream_t stream,
                 hipStreamCaptureMode mode) {
  static const auto real = original<decltype(begin_capture_spt)>("hipStreamBeginCapture_spt");
  return begin([&] { return call_original(real, stream, mode); });
}

UPTEMPO_FUNCTION("hipStreamBeginCaptureToGraph", begin_capture_to_graph, hipStream_t stream,
                 hipGraph_t graph, const hipGraphNode_t* after, const void* edges, size_t count,
                 hipStreamCaptureMode mode) {
  static const auto real =
      original<decltype(begin_capture_to_graph)>("hipStreamBeginCaptureToGraph");
  return begin([&] { return call_original(real, stream, graph, after, edges, count, mode); });
}

hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph) {
  static const auto real = UPTEMPO_ORIGINAL(hipStreamEndCapture);
  return end(stream, [&] { return call_original(real, stream, graph); });
}

UPTEMPO_FUNCTION("hipStreamEndCapture_spt", end_capture_spt, hipStream_t stream,
                 hipGraph_t* graph) {
  static const auto real = original<decltype(end_capture_spt)>("hipStreamEndCapture_spt");
  return end(per_thread(stream), [&] { return call_original(real, stream, graph); });
}

hipError_t hipMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                              size_t bytes, hipStream_t stream) {
  static const auto real = UPTEMPO_ORIGINAL(hipMemcpyPeerAsync);
  return follow_unknown("hipMemcpyPeerAsync", stream, [&] {
    return call_original(real, to, to_device, from, from_device, bytes, stream);
  });
}

hipError_t hipDrvMemcpy3DAsync(const HIP_MEMCPY3D* copy, hipStream_t stream) {
  static const auto real = UPTEMPO_ORIGINAL(hipDrvMemcpy3DAsync);
  return follow_unknown("hipDrvMemcpy3DAsync", stream,
                        [&] { return call_original(real, copy, stream); });
}

UPTEMPO_FUNCTION("hipMemcpy2DFromArrayAsync", from_array, void* to, size_t pitch, const void* array,
                 size_t x, size_t y, size_t width, size_t height, hipMemcpyKind kind,
                 hipStream_t stream) {
  static const auto real = original<decltype(from_array)>("hipMemcpy2DFromArrayAsync");
  return follow_unknown("hipMemcpy2DFromArrayAsync", stream, [&] {
    return call_original(real, to, pitch, array, x, y, width, height, kind, stream);
  });
}

UPTEMPO_FUNCTION("hipMemcpy2DFromArrayAsync_spt", from_array_spt, void* to, size_t pitch,
                 const void* array, size_t x, size_t y, size_t width, size_t height,
                 hipMemcpyKind kind, hipStream_t stream) {
  static const auto real = original<decltype(from_array_spt)>("hipMemcpy2DFromArrayAsync_spt");
  return follow_unknown("hipMemcpy2DFromArrayAsync", per_thread(stream), [&] {
    return call_original(real, to, pitch, array, x, y, width, height, kind, stream);
  });
}

UPTEMPO_FUNCTION("hipMemcpy2DToArrayAsync", to_array, void* array, size_t x, size_t y,
                 const void* from, size_t pitch, size_t width, size_t height, hipMemcpyKind kind,
                 hipStream_t stream) {
  static const auto real = original<decltype(to_array)>("hipMemcpy2DToArrayAsync");
  return follow_unknown("hipMemcpy2DToArrayAsync", stream, [&] {
    return call_original(real, array, x, y, from, pitch, width, height, kind, stream);
  });
}

UPTEMPO_FUNCTION("hipMemcpy2DToArrayAsync_spt", to_array_spt, void* array, size_t x, size_t y,
                 const void* from, size_t pitch, size_t width, size_t height, hipMemcpyKind kind,
                 hipStream_t stream) {
  static const auto real = original<decltype(to_array_spt)>("hipMemcpy2DToArrayAsync_spt");
  return follow_unknown("hipMemcpy2DToArrayAsync", per_thread(stream), [&] {
    return call_original(real, array, x, y, from, pitch, width, height, kind, stream);
  });
}

UPTEMPO_FUNCTION("hipMemcpyAtoHAsync", array_to_host, void* to, void* array, size_t offset,
                 size_t bytes, hipStream_t stream) {
  static const auto real = original<decltype(array_to_host)>("hipMemcpyAtoHAsync");
  return follow_unknown("hipMemcpyAtoHAsync", stream,
                        [&] { return call_original(real, to, array, offset, bytes, stream); });
}

UPTEMPO_FUNCTION("hipMemcpyHtoAAsync", host_to_array, void* array, size_t offset, const void* from,
                 size_t bytes, hipStream_t stream) {
  static const auto real = original<decltype(host_to_array)>("hipMemcpyHtoAAsync");
  return follow_unknown("hipMemcpyHtoAAsync", stream,
                        [&] { return call_original(real, array, offset, from, bytes, stream); });
}

// hipMemsetParams have no depth.
hipError_t hipMemset3DAsync(hipPitchedPtr memory, int value, hipExtent extent, hipStream_t stream) {
  static const auto real = UPTEMPO_ORIGINAL(hipMemset3DAsync);
  return follow_unknown("hipMemset3DAsync", stream,
                        [&] { return call_original(real, memory, value, extent, stream); });
}

UPTEMPO_FUNCTION("hipMemset3DAsync_spt", memset_3d_spt, hipPitchedPtr memory, int value,
                 hipExtent extent, hipStream_t stream) {
  static const auto real = original<decltype(memset_3d_spt)>("hipMemset3DAsync_spt");
  return follow_unknown("hipMemset3DAsync", per_thread(stream),
                        [&] { return call_original(real, memory, value, extent, stream); });
}

// The node has no trace of the event that the kernel's end records.
hipError_t hipExtLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                              size_t shared_bytes, hipStream_t stream, hipEvent_t start,
                              hipEvent_t stop, int flags) {
  static const auto real = UPTEMPO_ORIGINAL(hipExtLaunchKernel);
  return follow_unknown("hipExtLaunchKernel", stream, [&] {
    return call_original(real, function, grid, block, arguments, shared_bytes, stream, start, stop,
                         flags);
  });
}

UPTEMPO_FUNCTION(UPTEMPO_EXT_MODULE_LAUNCH, module_launch, hipFunction_t function, uint32_t x,
                 uint32_t y, uint32_t z, uint32_t block_x, uint32_t block_y, uint32_t block_z,
                 size_t shared_bytes, hipStream_t stream, void** arguments, void** extra,
                 hipEvent_t start, hipEvent_t stop, uint32_t flags) {
  static const auto real = original<decltype(module_launch)>(UPTEMPO_EXT_MODULE_LAUNCH);
  return follow_unknown("hipExtModuleLaunchKernel", stream, [&] {
    return call_original(real, function, x, y, z, block_x, block_y, block_z, shared_bytes, stream,
                         arguments, extra, start, stop, flags);
  });
}

// The node does not say that its workgroups must run at the same time.
UPTEMPO_FUNCTION("hipLaunchCooperativeKernel", cooperative, const void* function, dim3 grid,
                 dim3 block, void** arguments, unsigned int shared_bytes, hipStream_t stream) {
  static const auto real = original<decltype(cooperative)>("hipLaunchCooperativeKernel");
  return follow_unknown("hipLaunchCooperativeKernel", stream, [&] {
    return call_original(real, function, grid, block, arguments, shared_bytes, stream);
  });
}

UPTEMPO_FUNCTION("hipLaunchCooperativeKernel_spt", cooperative_spt, const void* function, dim3 grid,
                 dim3 block, void** arguments, uint32_t shared_bytes, hipStream_t stream) {
  static const auto real = original<decltype(cooperative_spt)>("hipLaunchCooperativeKernel_spt");
  return follow_unknown("hipLaunchCooperativeKernel", per_thread(stream), [&] {
    return call_original(real, function, grid, block, arguments, shared_bytes, stream);
  });
}

UPTEMPO_FUNCTION("hipModuleLaunchCooperativeKernel", module_cooperative, hipFunction_t function,
                 uint32_t x, uint32_t y, uint32_t z, uint32_t block_x, uint32_t block_y,
                 uint32_t block_z, uint32_t shared_bytes, hipStream_t stream, void** arguments) {
  static const auto real =
      original<decltype(module_cooperative)>("hipModuleLaunchCooperativeKernel");
  return follow_unknown("hipModuleLaunchCooperativeKernel", stream, [&] {
    return call_original(real, function, x, y, z, block_x, block_y, block_z, shared_bytes, stream,
                         arguments);
  });
}

}  // extern "C"
