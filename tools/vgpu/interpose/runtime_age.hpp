// Whether the program's ROCr is new enough for the device.
#pragma once

#include <string>

#include "device/description.hpp"

namespace uptempo::vgpu::interpose {

// Returns a sentence that names the loaded libhsa-runtime64 and the version that the device needs,
// or an empty string. A program without the library is not refused: it may use the driver directly.
std::string why_runtime_is_too_old(const DeviceDescription& device);

}  // namespace uptempo::vgpu::interpose
