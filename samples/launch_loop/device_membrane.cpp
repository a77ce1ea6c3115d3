#include "samples/launch_loop/device_membrane.hpp"

namespace uptempo::launch_loop {

DeviceMembrane::DeviceMembrane(const Agent& gpu, const Program& program, Way way)
    : way_(way),
      copier_(gpu),
      fresh_(gpu, way == Way::naive),
      streams_(gpu, {.hardware_queues = 1}),
      stream_(streams_),
      height_(gpu, kPoints),
      speed_(gpu, kPoints),
      actuate_(streams_, program.kernel<float*, const float*, uint32_t>("actuate")),
      wind_(streams_, program.kernel<float*, uint32_t, float>("wind")),
      tension_(streams_, program.kernel<float*, const float*, uint32_t, float, float>("tension")),
      hold_(streams_, program.kernel<float*, const float*, uint32_t, Mounts>("hold")),
      drift_(streams_, program.kernel<float*, const float*, uint32_t, float>("drift")),
      observe_(streams_, program.kernel<float*, const float*, const float*, uint32_t>("observe")) {
  copier_.fill(height_, 0);
  copier_.fill(speed_, 0);
  const bool skips = way == Way::skipped_arguments;
  actuate_.skip_arguments(skips);
  wind_.skip_arguments(skips);
  tension_.skip_arguments(skips);
  hold_.skip_arguments(skips);
  drift_.skip_arguments(skips);
  observe_.skip_arguments(skips);
}

Field DeviceMembrane::download(const DeviceBuffer<float>& field) {
  Field host;
  copier_.copy(host, field);
  return host;
}

}  // namespace uptempo::launch_loop
