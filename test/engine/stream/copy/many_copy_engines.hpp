// Streams over doubles with several copy engines each.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "test/engine/stream/copy/copy_engine.hpp"
#include "test/engine/stream/stream_devices.hpp"

namespace uptempo::test {

inline constexpr uint32_t kEngines = 5;

// Engines 0 to 4, and one that stands for the runtime's choice.
struct Engines {
  std::deque<CopyEngine> engines{kEngines};
  CopyEngine of_runtime;

  // Masks of the engines to choose from.
  StreamDevicesOptions options(uint32_t to_device = 0b11, uint32_t to_host = 0b11) {
    using detail::CopyDirection;
    StreamDevicesOptions options;
    options.copies = of_runtime.parts();
    options.copies.make_lane = [this](std::optional<uint32_t> engine,
                                      const detail::CopyLaneOptions& of_lane) {
      return engine ? engines.at(*engine).lane(of_lane) : of_runtime.lane(of_lane);
    };
    for (const auto& [direction, mask] : {std::pair(CopyDirection::to_device, to_device),
                                          std::pair(CopyDirection::to_host, to_host)})
      options.copies.engines[static_cast<size_t>(direction)] =
          detail::choose_engines(direction, kEngines, mask, 0);
    options.streams.copies = {.host_bytes = 0, .kernel_bytes = 0, .engine_copies = 16};
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
inline std::vector<uint64_t> begun(StreamDevices& devices) {
  std::vector<uint64_t> counts(kEngines + 1);
  devices.state().transfers().for_each_lane([&](const detail::CopyLane& lane) {
    const std::string_view name = lane.name();
    const size_t engine = name.starts_with("by engine ") ? name.back() - '0' : kEngines;
    counts.at(engine) += lane.copies();
  });
  return counts;
}
using Counts = std::vector<uint64_t>;

}  // namespace uptempo::test
