// Apertures of the flat address space, as amdgpu configures them for GFX9: above the canonical hole
// of user space, 4 GiB each. The driver reports them to the program, and the instruction set routes
// addresses by them.
#pragma once

#include <cstdint>

namespace uptempo::vgpu {

// Bits 63:48 of an address.
inline constexpr uint64_t kSharedAperture = 1, kPrivateAperture = 2;
inline constexpr uint64_t kApertureBytes = uint64_t{1} << 32;

constexpr uint64_t aperture_base(uint64_t aperture) noexcept { return aperture << 48; }
constexpr uint64_t aperture_limit(uint64_t aperture) noexcept {
  return aperture_base(aperture) + kApertureBytes - 1;
}

}  // namespace uptempo::vgpu
