#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "engine/memory/buffer.hpp"
#include "engine/runtime/error.hpp"
#include "engine/stream/stream.hpp"
#include "engine/stream/streams.hpp"
#include "tools/hardware/probe.hpp"

namespace uptempo::hardware {
namespace {

constexpr size_t kWords = 4 << 20;  // 16 MiB

// HSA_AMD_AGENT_INFO_NUM_SDMA_ENG, which older hsa_ext_amd.h lacks.
constexpr auto kEngineCount = std::bit_cast<hsa_agent_info_t>(uint32_t{0xA10A});
constexpr uint32_t kMostEngines = 16;

uint32_t engines_of(const Agent& gpu) {
  uint32_t count = 0;
  if (hsa_agent_get_info(gpu.handle(), kEngineCount, &count) != HSA_STATUS_SUCCESS) return 0;
  return std::min(count, kMostEngines);
}

// Statuses of a copy that was never begun.
bool is_refusal(hsa_status_t status) {
  return status == HSA_STATUS_ERROR_INVALID_ARGUMENT ||
         status == HSA_STATUS_ERROR_OUT_OF_RESOURCES || status == HSA_STATUS_ERROR_INVALID_AGENT;
}

struct RoundTrip {
  bool right = true;
  double to_device_gb_per_s = 0, to_host_gb_per_s = 0;
};

class Copies {
 public:
  explicit Copies(const Agent& gpu) : gpu_(gpu), host_(gpu, kWords), device_(gpu, kWords) {}

  // Copies a new pattern to the device and back. Throws Error.
  RoundTrip run(const CopyEngines& engines) {
    Streams streams(gpu_, {.engines = engines});
    Stream stream(streams);
    const uint32_t seed = ++turn_ * 2'654'435'761u;
    const auto word = [seed](size_t i) { return seed + static_cast<uint32_t>(i); };
    for (size_t i = 0; i < kWords; ++i) host_[i] = word(i);
    RoundTrip trip;
    trip.to_device_gb_per_s =
        speed_of(stream, [&] { stream.copy(device_, host_, {.path = CopyPath::engine}); });
    std::ranges::fill(host_.span(), ~seed);
    trip.to_host_gb_per_s =
        speed_of(stream, [&] { stream.copy(host_, device_, {.path = CopyPath::engine}); });
    for (size_t i = 0; i < kWords && trip.right; ++i) trip.right = host_[i] == word(i);
    return trip;
  }

 private:
  // The speed of the second copy: the first one may create a queue of the engine.
  template <class Copy>
  static double speed_of(Stream& stream, const Copy& copy) {
    copy();
    stream.synchronize();
    const auto begin = std::chrono::steady_clock::now();
    copy();
    stream.synchronize();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    return kWords * sizeof(uint32_t) / time.count();
  }

  Agent gpu_;
  PinnedBuffer<uint32_t> host_;
  DeviceBuffer<uint32_t> device_;
  uint32_t turn_ = 0;
};

}  // namespace

Answer probe_copy_engines(const support::Device& device) {
  Copies copies(device.gpu);
  nlohmann::ordered_json measured = nlohmann::ordered_json::array();
  std::string speeds, wrong, refused;
  const auto list = [](std::string& names, const std::string& name) {
    names += (names.empty() ? "" : ", ") + name;
  };
  const auto note = [&](const std::string& name, bool right, double gb_per_s) {
    measured.push_back({{"copies", name}, {"right", right}, {"gb_per_s", gb_per_s}});
    list(speeds, fmt::format("{} {:.3g}", name, gb_per_s));
    if (!right) list(wrong, name);
  };
  const RoundTrip chosen = copies.run({.choice = EngineChoice::runtime});
  note("to the device", chosen.right, chosen.to_device_gb_per_s);
  note("to the host", chosen.right, chosen.to_host_gb_per_s);

  // Engine by engine, in one direction each. ROCr before 5.6 offers no choice, and an engine may
  // not copy in a direction: the copy is then refused before it begins.
  bool offered = false;
  for (uint32_t engine = 0; engine < engines_of(device.gpu); ++engine) {
    for (const bool to_device : {true, false}) {
      const std::string name =
          fmt::format("engine {} to the {}", engine, to_device ? "device" : "host");
      CopyEngines engines;
      (to_device ? engines.to_device : engines.to_host) = 1u << engine;
      try {
        const RoundTrip trip = copies.run(engines);
        offered = true;
        note(name, trip.right, to_device ? trip.to_device_gb_per_s : trip.to_host_gb_per_s);
      } catch (const Error& error) {
        if (!is_refusal(error.status())) throw;
        measured.push_back({{"copies", name}, {"refused", error.what()}});
        list(refused, name);
      }
    }
  }
  if (!wrong.empty()) return {Verdict::differs, "wrong bytes after copies " + wrong, measured};
  std::string text = "GB/s " + speeds;
  if (!offered)
    text += "; ROCr offers no choice of engines";
  else if (!refused.empty())
    text += "; ROCr refuses " + refused;
  return {Verdict::as_assumed, text, measured};
}

}  // namespace uptempo::hardware
