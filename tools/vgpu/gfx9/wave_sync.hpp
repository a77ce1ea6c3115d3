// Global wave sync (GWS): barriers among waves of all workgroups, which ds_gws_init and ds_gws_barrier name by resource. HIP's grid
// synchronisation of cooperative launches stands on them.
//
// One per queue: a dispatch initialises a resource that a later one of the same queue waits at. The counts of a queue whose dispatches were
// abandoned go with the queue.
//
// Who waits must be resident, as on hardware: a barrier among more waves than the device holds at a time is never passed.
//
// Thread safety: all members, from any worker.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

namespace uptempo::vgpu::gfx9 {

class WaveSync {
 public:
  static constexpr unsigned kResources = 64;

  // The next barrier at `resource` is passed when `waves_less_one` + 1 waves have arrived.
  void initialize(unsigned resource, uint32_t waves_less_one) {
    const std::lock_guard lock(mutex_);
    resources_[resource].missing = waves_less_one;
  }

  // One more wave has arrived, once per barrier. The result is the phase that it waits to see the end of, never 0; nothing: the resource was
  // never initialised. The last to arrive ends the phase, and `waves_less_one` counts for the next one.
  std::optional<uint64_t> arrive(unsigned resource, uint32_t waves_less_one) {
    const std::lock_guard lock(mutex_);
    Resource& at = resources_[resource];
    if (!at.missing) return std::nullopt;
    const uint64_t phase =
        at.phase.load(std::memory_order_relaxed);  // changes under the mutex only
    if (*at.missing != 0) {
      --*at.missing;
    } else {
      at.missing = waves_less_one;
      // release: whoever passes sees what every wave stored before it arrived; the mutex ordered those before this one.
      at.phase.store(phase + 1, std::memory_order_release);
    }
    return phase;
  }

  bool passed(unsigned resource, uint64_t phase) const noexcept {
    return resources_[resource].phase.load(std::memory_order_acquire) != phase;
  }

 private:
  struct Resource {
    std::optional<uint32_t> missing;  // waves that come before the last one
    std::atomic<uint64_t> phase{1};
  };

  std::mutex mutex_;
  std::array<Resource, kResources> resources_;
};

}  // namespace uptempo::vgpu::gfx9
