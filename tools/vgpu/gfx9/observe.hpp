// Policies for accesses to memory: plain, observed, or through caches. Handlers are templates over
// one of these classes.
#pragma once

#include <cstdint>

#include "device/memory.hpp"
#include "device/observer.hpp"
#include "gfx9/op.hpp"
#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu::gfx9 {

// `wave`, at `op`.
ObservedWave observed_wave(const Op& op, const Wave& wave) noexcept;

struct Unobserved {
  static constexpr bool kEnabled = false;
  static constexpr bool kCached = false;
  static void access(const Op&, const Wave&, Access, uint32_t, uint64_t, const GpuAddress*,
                     const ChangingLanes& = {}) noexcept {}
  static void accessed(const Op&, const Wave&, Access, uint32_t, uint64_t,
                       const GpuAddress*) noexcept {}
  static void out_of_range(const Op&, const Wave&, Access, uint32_t, uint64_t,
                           const GpuAddress*) noexcept {}
  static void lds_access(const Op&, const Wave&, Access, uint32_t, uint64_t, const uint32_t*,
                         bool) noexcept {}
  static void scalar_access(const Op&, const Wave&, Access, uint32_t, GpuAddress) noexcept {}
};

// Forwards to the dispatch's MemoryObserver; does nothing when it has none.
struct Observed {
  static constexpr bool kEnabled = true;
  static constexpr bool kCached = false;
  static void access(const Op& op, const Wave& wave, Access access, uint32_t size_bytes,
                     uint64_t lanes, const GpuAddress* address,
                     const ChangingLanes& changing = {}) noexcept;
  // After the access, if it reads and reaches further than the wave.
  static void accessed(const Op& op, const Wave& wave, Access access, uint32_t size_bytes,
                       uint64_t lanes, const GpuAddress* address) noexcept;
  // An access of the lanes that a buffer's range check excludes.
  static void out_of_range(const Op& op, const Wave& wave, Access access, uint32_t size_bytes,
                           uint64_t lanes, const GpuAddress* address) noexcept;
  // `offset`: of each lane, in the group segment. `returns`: of an atomic.
  static void lds_access(const Op& op, const Wave& wave, Access access, uint32_t size_bytes,
                         uint64_t lanes, const uint32_t* offset, bool returns = false,
                         const ChangingLanes& changing = {}) noexcept;
  static void scalar_access(const Op& op, const Wave& wave, Access access, uint32_t size_bytes,
                            GpuAddress address) noexcept;
};

// Calls hook(observer, ObservedWave) if the dispatch has an observer that follows the order of
// accesses.
template <class Hook>
void observe_order(const Op& op, const Wave& wave, Hook&& hook) noexcept {
  const DispatchState& dispatch = wave.workgroup->dispatch();
  if (dispatch.observer != nullptr && dispatch.observer->interests().order)
    hook(*dispatch.observer, observed_wave(op, wave));
}

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
