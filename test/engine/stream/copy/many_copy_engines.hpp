// Streams over doubles with several copy engines each.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "test/engine/stream/copy/copy_engine.hpp"
#include "test/engine/stream/stream_devices.hpp"

namespace uptempo::test {

// Two engines that face the host and three for XGMI links, like gfx90a.
inline constexpr uint32_t kHostEngines = 2, kAllEngines = 5;
inline detail::EngineOffer offer() {
  return {.host_engines = kHostEngines, .all_engines = kAllEngines};
}

// Engines 0 to 4, and one that stands for the runtime's choice.
struct Engines {
  std::deque<CopyEngine> engines{kAllEngines};
  CopyEngine of_runtime;
  uint32_t idle = 0b11111, preferred = 0;

  StreamDevicesOptions options(const CopyEngines& wanted = {}) {
    StreamDevicesOptions options;
    options.copies = of_runtime.parts();
    options.copies.make_lane = [this](std::optional<uint32_t> engine,
                                      const detail::CopyLaneOptions& of_lane) {
      return engine ? engines.at(*engine).lane(of_lane) : of_runtime.lane(of_lane);
    };
    options.copies.engines = offer();
    options.copies.idle_engines = [this](detail::CopyDirection) { return idle; };
    options.copies.preferred_engines = [this](detail::CopyDirection) { return preferred; };
    options.streams.copies = {.host_bytes = 0, .kernel_bytes = 0, .engine_copies = 16};
    options.streams.engines = wanted;
    return options;
  }
  void pause() {
    for (CopyEngine& engine : engines) engine.pause();
  }
  void resume() {
    for (CopyEngine& engine : engines) engine.resume();
  }
};

// Host memory and device memory of the doubles.
struct Ends {
  std::vector<uint8_t> host = std::vector<uint8_t>(64, 7), device = std::vector<uint8_t>(64),
                       back = std::vector<uint8_t>(64);
  void upload(Stream& stream) {
    stream.copy(CopyTarget::device(device.data(), 64), CopySource::pinned(host.data(), 64));
  }
  void download(Stream& stream) {
    stream.copy(CopyTarget::pinned(back.data(), 64), CopySource::device(device.data(), 64));
  }
};

// Copies begun, by engine; the last one is the runtime's choice.
inline std::vector<uint64_t> begun(Streams& streams) {
  std::vector<uint64_t> counts(kAllEngines + 1);
  for (const CopyEngineUse& use : streams.copy_engines())
    counts.at(use.engine.value_or(kAllEngines)) += use.copies;
  return counts;
}
using Counts = std::vector<uint64_t>;

}  // namespace uptempo::test
