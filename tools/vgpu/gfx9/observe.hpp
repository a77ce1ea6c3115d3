// Policies for accesses to memory: plain, observed, or through caches. Handlers are templates over
// one of these classes.
#pragma once

#include <cstdint>

#include "device/memory.hpp"
#include "gfx9/op.hpp"

namespace uptempo::vgpu::gfx9 {

struct Unobserved {
  static constexpr bool kEnabled = false;
  static constexpr bool kCached = false;
  static void access(const Op&, const Wave&, Access, uint32_t, uint64_t,
                     const GpuAddress*) noexcept {}
  static void scalar_access(const Op&, const Wave&, Access, uint32_t, GpuAddress) noexcept {}
};

// Forwards to the dispatch's MemoryObserver; does nothing when it has none.
struct Observed {
  static constexpr bool kEnabled = true;
  static constexpr bool kCached = false;
  static void access(const Op& op, const Wave& wave, Access access, uint32_t size_bytes,
                     uint64_t lanes, const GpuAddress* address) noexcept;
  static void scalar_access(const Op& op, const Wave& wave, Access access, uint32_t size_bytes,
                            GpuAddress address) noexcept;
};

// Observed, and through the executor's Caches, which must exist. Private memory bypasses the
// caches: it belongs to one wave, so the wave cannot see a difference.
struct Cached : Observed {
  static constexpr bool kCached = true;
};

// Returns choose.operator()<Observer>() with the class that `policy` stands for.
template <class Choose>
Handler with_observer(MemoryPolicy policy, Choose&& choose) {
  switch (policy) {
    case MemoryPolicy::observed:
      return choose.template operator()<Observed>();
    case MemoryPolicy::cached:
      return choose.template operator()<Cached>();
    case MemoryPolicy::direct:
      break;
  }
  return choose.template operator()<Unobserved>();
}

}  // namespace uptempo::vgpu::gfx9
