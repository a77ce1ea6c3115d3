#include "device_membrane.hpp"

namespace uptempo::launch_loop {
namespace {

// Blocks of arguments that each Launcher keeps.
uint32_t blocks_for(Way way) { return way == Way::skipped_arguments ? 8 : 0; }

}  // namespace

DeviceMembrane::DeviceMembrane(const Agent& gpu, const Program& program, Way way)
    : way_(way),
      copier_(gpu),
      fresh_(gpu, way == Way::naive),
      streams_(gpu, {.hardware_queues = 1}),
      stream_(streams_),
      height_(gpu, kPoints),
      speed_(gpu, kPoints),
      actuate_(streams_, program.kernel<float*, const float*, uint32_t>("actuate"),
               blocks_for(way)),
      wind_(streams_, program.kernel<float*, uint32_t, float>("wind"), blocks_for(way)),
      tension_(streams_, program.kernel<float*, const float*, uint32_t, float, float>("tension"),
               blocks_for(way)),
      hold_(streams_, program.kernel<float*, const float*, uint32_t, Mounts>("hold"),
            blocks_for(way)),
      drift_(streams_, program.kernel<float*, const float*, uint32_t, float>("drift"),
             blocks_for(way)),
      observe_(streams_, program.kernel<float*, const float*, const float*, uint32_t>("observe"),
               blocks_for(way)) {
  copier_.fill(height_, 0);
  copier_.fill(speed_, 0);
}

Field DeviceMembrane::download(const DeviceBuffer<float>& field) {
  Field host;
  copier_.copy(host, field);
  return host;
}

}  // namespace uptempo::launch_loop
