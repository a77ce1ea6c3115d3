// The amdgpu render node's ioctls that ROCT, ROCr and libdrm_amdgpu use: VERSION, the read-only
// INFO queries and imported buffer objects (drm_objects.hpp).
//
// DRM's command submission and allocation are not emulated. Those requests return -EINVAL, as
// drm_ioctl() does for unknown numbers, and are reported in the log.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>

#include "kfd/buffers.hpp"
#include "kfd/drm_objects.hpp"
#include "kfd/gpu.hpp"

namespace uptempo::vgpu::kfd {

// `gpu`: that of the render node.
int drm_ioctl(Gpu& gpu, const Buffers& buffers, DrmObjects& objects, uint64_t request,
              void* argument);

}  // namespace uptempo::vgpu::kfd
