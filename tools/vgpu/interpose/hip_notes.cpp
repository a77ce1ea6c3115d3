// The preloaded library's part of hip_streams.cpp.
#include "device/host/publisher.hpp"
#include "interpose/real.hpp"

UPTEMPO_VGPU_EXPORT bool uptempo_vgpu_hip_call_begins(uint64_t stream) {
  return uptempo::vgpu::begin_hip_call(static_cast<uptempo::vgpu::HipStream>(stream));
}

UPTEMPO_VGPU_EXPORT void uptempo_vgpu_hip_call_ends() { uptempo::vgpu::end_hip_call(); }
