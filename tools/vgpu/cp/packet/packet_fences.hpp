// Effects of a packet's fences on the caches of an incoherent device, and of its acquire on stores
// of the host that a lazy path holds back. On other devices they have none.
//
// A dispatch acquires before its first workgroup and releases after its last one. A barrier packet
// does both when it completes. Both happen before the completion signal (HSA System Architecture
// Specification 1.2, 2.9).
#pragma once

#include "cp/packet/aql_packet.hpp"
#include "device/bar/lazy_bar.hpp"
#include "device/caches/incoherent.hpp"
#include "device/device.hpp"

namespace uptempo::vgpu {

// `stale`: no cache is invalidated (`packet stale` of --inject).
inline void carry_out_acquire(const Device& device, AqlHeader header, bool stale) noexcept {
  if (device.lazy_bar != nullptr && static_cast<FenceScope>(header.acquire()) == FenceScope::system)
    device.lazy_bar->acquire();
  if (device.caches != nullptr && !stale)
    device.caches->acquire(static_cast<FenceScope>(header.acquire()));
}
inline void carry_out_release(const Device& device, AqlHeader header) noexcept {
  if (device.caches != nullptr) device.caches->release(static_cast<FenceScope>(header.release()));
}

}  // namespace uptempo::vgpu
