// A queue's use of the race detector (device/races). Does nothing while it is off.
//
// Thread safety: the queue's thread. All workers call the observer of a dispatch.
#pragma once

#include <cstdint>
#include <memory>

#include "device/device.hpp"
#include "device/host/publisher.hpp"
#include "device/races/races.hpp"
#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu {

// One dispatch, from its launch on.
struct RaceWatched {
  std::unique_ptr<races::DispatchRaces> observer;
  races::Checked dispatch;
};

class RaceWatch {
 public:
  RaceWatch(const Device& device, uint32_t queue) : device_(device), queue_(queue) {}

  // Before `state` is launched. Returns null if races are not checked in it: kernels of ROCr and
  // HIP are not. `published`: the host's call.
  std::unique_ptr<RaceWatched> launch(gfx9::DispatchState& state, uint64_t index, bool runtimes,
                                      const Publisher& published) const;
  // When it has ended, also with a fault.
  void end(RaceWatched& watched) const { device_.races->end(*watched.observer, watched.dispatch); }

 private:
  const Device& device_;
  const uint32_t queue_;
};

}  // namespace uptempo::vgpu
