// What the fences of a packet do to the caches of an incoherent device. On others they do nothing: all memory is coherent.
//
// A dispatch acquires ahead of its first workgroup and releases behind its last one; a barrier packet does both when it completes. Either way ahead
// of the completion signal (HSA System Architecture Specification 1.2, 2.9).
#pragma once

#include "cp/aql_packet.hpp"
#include "device/device.hpp"
#include "device/incoherent.hpp"

namespace uptempo::vgpu {

inline void carry_out_acquire(const Device& device, AqlHeader header) noexcept {
  if (device.caches != nullptr) device.caches->acquire(static_cast<FenceScope>(header.acquire()));
}
inline void carry_out_release(const Device& device, AqlHeader header) noexcept {
  if (device.caches != nullptr) device.caches->release(static_cast<FenceScope>(header.release()));
}

}  // namespace uptempo::vgpu
