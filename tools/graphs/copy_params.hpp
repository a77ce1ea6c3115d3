// Copies of all functions as the parameters of a three-dimensional copy.
#pragma once

#include <cstddef>

#include <uptempo/hip/api/hip_api.hpp>

namespace uptempo::graphs {

inline hipPitchedPtr pitched(const void* memory, size_t pitch, size_t width_bytes, size_t height) {
  return {.ptr = const_cast<void*>(memory), .pitch = pitch, .xsize = width_bytes, .ysize = height};
}

inline hipMemcpy3DParms rows(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                             size_t width_bytes, size_t height, hipMemcpyKind kind) {
  hipMemcpy3DParms copy{};
  copy.srcPtr = pitched(from, from_pitch, width_bytes, height);
  copy.dstPtr = pitched(to, to_pitch, width_bytes, height);
  copy.extent = {.width = width_bytes, .height = height, .depth = 1};
  copy.kind = kind;
  return copy;
}

inline hipMemcpy3DParms line(void* to, const void* from, size_t bytes, hipMemcpyKind kind) {
  return rows(to, bytes, from, bytes, bytes, 1, kind);
}

}  // namespace uptempo::graphs
