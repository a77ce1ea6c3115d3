// The amdgpu render node's ioctls that ROCT and libdrm_amdgpu ask for: VERSION and the read-only INFO queries.
//
// Command submission and buffer objects of DRM are not emulated: those requests answer -EINVAL, as drm_ioctl() does for numbers that
// a driver does not have, and are named in the log.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>

#include "device/description.hpp"
#include "kfd/buffers.hpp"

namespace uptempo::vgpu::kfd {

int drm_ioctl(const DeviceDescription& description, const Buffers& buffers, uint64_t request,
              void* argument);

}  // namespace uptempo::vgpu::kfd
