// HIP's functions that copy in streams: each calls HIP's own. In a captured stream, it enters the
// node in the ledger.

#include <uptempo/hip/api/hip_api.hpp>
#include "tools/graphs/captured_call.hpp"
#include "tools/graphs/copy_params.hpp"
#include "tools/graphs/original.hpp"
#include "tools/graphs/symbol_copies.hpp"
#include "tools/graphs/symbol_name.hpp"

using namespace uptempo::graphs;

// NOLINTBEGIN(readability-identifier-naming): HIP's names
extern "C" {

hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind kind,
                          hipStream_t stream) {
  return follow_copy(
      stream, [&] { return UPTEMPO_CALL(hipMemcpyAsync, to, from, bytes, kind, stream); },
      line(to, from, bytes, kind));
}

UPTEMPO_FUNCTION("hipMemcpyAsync_spt", memcpy_async_spt, void* to, const void* from, size_t bytes,
                 hipMemcpyKind kind, hipStream_t stream) {
  return follow_copy(
      per_thread(stream),
      [&] { return UPTEMPO_CALL_AS(memcpy_async_spt, to, from, bytes, kind, stream); },
      line(to, from, bytes, kind));
}

hipError_t hipMemcpyWithStream(void* to, const void* from, size_t bytes, hipMemcpyKind kind,
                               hipStream_t stream) {
  return follow_copy(
      stream, [&] { return UPTEMPO_CALL(hipMemcpyWithStream, to, from, bytes, kind, stream); },
      line(to, from, bytes, kind));
}

// HIP 6 declares the source const.
UPTEMPO_FUNCTION("hipMemcpyHtoDAsync", memcpy_htod_async, hipDeviceptr_t to, const void* from,
                 size_t bytes, hipStream_t stream) {
  return follow_copy(
      stream, [&] { return UPTEMPO_CALL_AS(memcpy_htod_async, to, from, bytes, stream); },
      line(to, from, bytes, hipMemcpyHostToDevice));
}

hipError_t hipMemcpyDtoHAsync(void* to, hipDeviceptr_t from, size_t bytes, hipStream_t stream) {
  return follow_copy(
      stream, [&] { return UPTEMPO_CALL(hipMemcpyDtoHAsync, to, from, bytes, stream); },
      line(to, from, bytes, hipMemcpyDeviceToHost));
}

hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes,
                              hipStream_t stream) {
  return follow_copy(
      stream, [&] { return UPTEMPO_CALL(hipMemcpyDtoDAsync, to, from, bytes, stream); },
      line(to, from, bytes, hipMemcpyDeviceToDevice));
}

hipError_t hipMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                            size_t width, size_t height, hipMemcpyKind kind, hipStream_t stream) {
  return follow_copy(
      stream,
      [&] {
        return UPTEMPO_CALL(hipMemcpy2DAsync, to, to_pitch, from, from_pitch, width, height, kind,
                            stream);
      },
      rows(to, to_pitch, from, from_pitch, width, height, kind));
}

UPTEMPO_FUNCTION("hipMemcpy2DAsync_spt", memcpy_2d_async_spt, void* to, size_t to_pitch,
                 const void* from, size_t from_pitch, size_t width, size_t height,
                 hipMemcpyKind kind, hipStream_t stream) {
  return follow_copy(
      per_thread(stream),
      [&] {
        return UPTEMPO_CALL_AS(memcpy_2d_async_spt, to, to_pitch, from, from_pitch, width, height,
                               kind, stream);
      },
      rows(to, to_pitch, from, from_pitch, width, height, kind));
}

// HIP makes a three-dimensional copy of it, whose parameters it returns. Those of HIP 5.2 have the
// source's pitch on both sides, and HIP copies so.
hipError_t hipMemcpyParam2DAsync(const hip_Memcpy2D* copy, hipStream_t stream) {
  return follow(
      stream, [&] { return UPTEMPO_CALL(hipMemcpyParam2DAsync, copy, stream); },
      [&](hipGraphNode_t node) {
        const KeepLastError keep;
        hipMemcpy3DParms made{};
        if (type_of(node) == hipGraphNodeTypeMemcpy &&
            hipGraphMemcpyNodeGetParams(node, &made) == hipSuccess) {
          CopyLedger::instance().record(node, made);
        } else {
          CopyLedger::instance().record_unknown(
              node, "HIP does not describe the node of a captured hipMemcpyParam2DAsync");
        }
      });
}

hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms* copy, hipStream_t stream) {
  return follow(
      stream, [&] { return UPTEMPO_CALL(hipMemcpy3DAsync, copy, stream); },
      [&](hipGraphNode_t node) { CopyLedger::instance().record(node, *copy); });
}

UPTEMPO_FUNCTION("hipMemcpy3DAsync_spt", memcpy_3d_async_spt, const hipMemcpy3DParms* copy,
                 hipStream_t stream) {
  return follow(
      per_thread(stream), [&] { return UPTEMPO_CALL_AS(memcpy_3d_async_spt, copy, stream); },
      [&](hipGraphNode_t node) { CopyLedger::instance().record(node, *copy); });
}

// HIP's header overloads this function.
UPTEMPO_FUNCTION("hipMemcpyToSymbolAsync", memcpy_to_symbol_async, const void* symbol,
                 const void* from, size_t bytes, size_t offset, hipMemcpyKind kind,
                 hipStream_t stream) {
  return follow(
      stream,
      [&] {
        return UPTEMPO_CALL_AS(memcpy_to_symbol_async, symbol, from, bytes, offset, kind, stream);
      },
      [&](hipGraphNode_t node) { enter(node, copy_to_symbol(symbol, from, bytes, offset, kind)); });
}

UPTEMPO_FUNCTION("hipMemcpyToSymbolAsync_spt", memcpy_to_symbol_async_spt, const void* symbol,
                 const void* from, size_t bytes, size_t offset, hipMemcpyKind kind,
                 hipStream_t stream) {
  return follow(
      per_thread(stream),
      [&] {
        return UPTEMPO_CALL_AS(memcpy_to_symbol_async_spt, symbol, from, bytes, offset, kind,
                               stream);
      },
      [&](hipGraphNode_t node) { enter(node, copy_to_symbol(symbol, from, bytes, offset, kind)); });
}

// HIP's header overloads this function.
UPTEMPO_FUNCTION("hipMemcpyFromSymbolAsync", memcpy_from_symbol_async, void* to, const void* symbol,
                 size_t bytes, size_t offset, hipMemcpyKind kind, hipStream_t stream) {
  return follow(
      stream,
      [&] {
        return UPTEMPO_CALL_AS(memcpy_from_symbol_async, to, symbol, bytes, offset, kind, stream);
      },
      [&](hipGraphNode_t node) { enter(node, copy_from_symbol(to, symbol, bytes, offset, kind)); });
}

UPTEMPO_FUNCTION("hipMemcpyFromSymbolAsync_spt", memcpy_from_symbol_async_spt, void* to,
                 const void* symbol, size_t bytes, size_t offset, hipMemcpyKind kind,
                 hipStream_t stream) {
  return follow(
      per_thread(stream),
      [&] {
        return UPTEMPO_CALL_AS(memcpy_from_symbol_async_spt, to, symbol, bytes, offset, kind,
                               stream);
      },
      [&](hipGraphNode_t node) { enter(node, copy_from_symbol(to, symbol, bytes, offset, kind)); });
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
