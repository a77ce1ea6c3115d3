// Kernels of the runtimes, by their names.
#pragma once

#include <string_view>

namespace uptempo::vgpu {

// HIP's own kernels: copies, fills, stream operations (rocclr/device/blitcl.cpp).
constexpr bool is_kernel_of_hip(std::string_view name) noexcept {
  return name.starts_with("__amd_rocclr_");
}

}  // namespace uptempo::vgpu
