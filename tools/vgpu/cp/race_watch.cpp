#include "cp/race_watch.hpp"

#include "device/runtime_kernels.hpp"

namespace uptempo::vgpu {

std::unique_ptr<RaceWatched> RaceWatch::launch(gfx9::DispatchState& state, uint64_t index,
                                               bool runtimes, const Publisher& published) const {
  if (device_.races == nullptr || runtimes || is_kernel_of_hip(state.name)) return nullptr;
  auto observer =
      device_.races->begin({.workgroups = state.workgroups(),
                            .entry = state.kernel.entry,
                            .scratch_begin = state.scratch_base,
                            .scratch_end = state.scratch_base + state.scratch_bytes,
                            .stores_name_scope = state.kernel.target == gfx9::Target::gfx942});
  if (observer == nullptr) return nullptr;
  state.add_observer(*observer);
  return std::make_unique<RaceWatched>(RaceWatched{.observer = std::move(observer),
                                                   .dispatch = {.kernel = state.name,
                                                                .queue = queue_,
                                                                .index = index,
                                                                .gpu = device_.gpu,
                                                                .published = published}});
}

}  // namespace uptempo::vgpu
