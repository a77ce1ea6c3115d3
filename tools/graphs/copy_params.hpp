// Copies of all functions as the parameters of a three-dimensional copy.
#pragma once

#include <cstddef>
#include <optional>

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

// Why driver_copy() returns nothing.
inline constexpr const char* kUnreadDriverCopy =
    "a copy with an array, or without device memory at an end";

// Parameters of the driver interface. Empty for copies of arrays, and for copies that may be
// between pageable memory: there HIP 6.4 ignores pitches and positions (GraphDrvMemcpyNode in
// hip_graph_internal.hpp of ROCm/clr).
//
// HIP changes the parameters that it gets: read them before the call. Null is empty.
inline std::optional<hipMemcpy3DParms> driver_copy(const HIP_MEMCPY3D* parameters) {
  if (parameters == nullptr) return std::nullopt;
  const HIP_MEMCPY3D& given = *parameters;
  const auto is_memory = [](hipMemoryType type) {
    return type == hipMemoryTypeHost || type == hipMemoryTypeDevice || type == hipMemoryTypeUnified;
  };
  if (!is_memory(given.srcMemoryType) || !is_memory(given.dstMemoryType) ||
      (given.srcMemoryType != hipMemoryTypeDevice && given.dstMemoryType != hipMemoryTypeDevice))
    return std::nullopt;
  const void* const from =
      given.srcMemoryType == hipMemoryTypeHost ? given.srcHost : given.srcDevice;
  const void* const to = given.dstMemoryType == hipMemoryTypeHost ? given.dstHost : given.dstDevice;
  hipMemcpy3DParms copy{};
  copy.srcPtr = pitched(from, given.srcPitch, given.WidthInBytes, given.srcHeight);
  copy.srcPos = {.x = given.srcXInBytes, .y = given.srcY, .z = given.srcZ};
  copy.dstPtr = pitched(to, given.dstPitch, given.WidthInBytes, given.dstHeight);
  copy.dstPos = {.x = given.dstXInBytes, .y = given.dstY, .z = given.dstZ};
  copy.extent = {.width = given.WidthInBytes, .height = given.Height, .depth = given.Depth};
  copy.kind = hipMemcpyDefault;
  return copy;
}

}  // namespace uptempo::graphs
