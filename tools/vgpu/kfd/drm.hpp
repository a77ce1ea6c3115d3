// The amdgpu render node's ioctls that ROCT and libdrm_amdgpu use: VERSION and the read-only INFO
// queries.
//
// DRM's command submission and buffer objects are not emulated. Those requests return -EINVAL, as
// drm_ioctl() does for unknown numbers, and are reported in the log.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>

#include "kfd/buffers.hpp"
#include "kfd/gpu.hpp"

namespace uptempo::vgpu::kfd {

// `gpu`: that of the render node.
int drm_ioctl(const Gpu& gpu, const Buffers& buffers, uint64_t request, void* argument);

}  // namespace uptempo::vgpu::kfd
