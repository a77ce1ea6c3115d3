// Global wave sync (GWS): barriers among waves of all workgroups. ds_gws_init and ds_gws_barrier
// name a barrier by its resource number. HIP's grid synchronisation of cooperative launches uses
// them.
//
// Lifetime: one per queue, since a dispatch initialises a resource at which a later dispatch of the
// same queue waits. The counts of abandoned dispatches end with their queue.
//
// Limits: all waves that wait must be resident, as on hardware. A barrier among more waves than the
// device holds at a time is never passed.
//
// Thread safety: all members may be called from any worker.
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

  // The next barrier at `resource` opens when `waves_less_one` + 1 waves have arrived.
  void initialize(unsigned resource, uint32_t waves_less_one) {
    const std::lock_guard lock(mutex_);
    resources_[resource].missing = waves_less_one;
  }

  // Counts one arrival; a wave calls it once per barrier. Returns the phase whose end the wave
  // waits for, never 0, or nullopt if the resource was never initialised. The last arrival ends the
  // phase; its `waves_less_one` sets the size of the next one.
  std::optional<uint64_t> arrive(unsigned resource, uint32_t waves_less_one) {
    const std::lock_guard lock(mutex_);
    Resource& at = resources_[resource];
    if (!at.missing) return std::nullopt;
    // Changes under the mutex only.
    const uint64_t phase = at.phase.load(std::memory_order_relaxed);
    if (*at.missing != 0) {
      --*at.missing;
    } else {
      at.missing = waves_less_one;
      // release: a wave that passes sees what every wave stored before it arrived. The mutex
      // ordered the earlier arrivals before this one.
      at.phase.store(phase + 1, std::memory_order_release);
    }
    return phase;
  }

  bool passed(unsigned resource, uint64_t phase) const noexcept {
    return resources_[resource].phase.load(std::memory_order_acquire) != phase;
  }

 private:
  struct Resource {
    std::optional<uint32_t> missing;  // waves still to arrive before the last one
    std::atomic<uint64_t> phase{1};
  };

  std::mutex mutex_;
  std::array<Resource, kResources> resources_;
};

}  // namespace uptempo::vgpu::gfx9
