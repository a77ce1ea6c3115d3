#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <uptempo/memory/buffer.hpp>
#include <uptempo/runtime/signal.hpp>
#include <uptempo/stream/stream.hpp>
#include <uptempo/stream/streams.hpp>
#include "tools/hardware/probe.hpp"

namespace uptempo::hardware {
namespace {

constexpr size_t kWords = 4 << 20;  // 16 MiB
constexpr CopyPath kByEngine = CopyPath::engine;

struct Found {
  bool right = true;
  double to_device = 0, to_host = 0, two_to_device = 0;  // GB/s
  bool overtakes = false;  // a copy does not wait for another stream's copy that waits
};

class Copies {
 public:
  explicit Copies(const Agent& gpu) : gpu_(gpu), host_(gpu, kWords) {}

  Found run(bool by_library) {
    Streams streams(gpu_, {.choose_engines = by_library});
    Stream one(streams), other(streams);
    const uint32_t seed = ++turn_ * 2'654'435'761u;
    const auto word = [seed](size_t i) { return seed + static_cast<uint32_t>(i); };
    for (size_t i = 0; i < kWords; ++i) host_[i] = word(i);
    Found found;
    found.to_device = speed_of(streams, kWords, [&] { one.copy(devices_[0], host_, kByEngine); });
    found.two_to_device = speed_of(streams, 2 * kWords, [&] {
      one.copy(devices_[0], host_, kByEngine);
      other.copy(devices_[1], host_, kByEngine);
    });
    for (const DeviceBuffer<uint32_t>& device : devices_) {
      std::ranges::fill(host_.span(), ~seed);
      found.to_host = speed_of(streams, kWords, [&] { one.copy(host_, device, kByEngine); });
      for (size_t i = 0; i < kWords && found.right; ++i) found.right = host_[i] == word(i);
    }
    const Signal gate(SignalKind::interrupt, 1);
    one.after(gate, SignalSetBy::device);
    one.copy(devices_[0], host_, kByEngine);
    other.copy(devices_[1], host_, kByEngine);
    found.overtakes = other.synchronize(Deadline::after(std::chrono::seconds(1)));
    hsa_signal_store_screlease(gate.handle(), 0);
    streams.synchronize();
    return found;
  }

 private:
  // The speed of the second turn: the first one may create a queue of the engine.
  template <class Copy>
  static double speed_of(Streams& streams, size_t words, const Copy& copy) {
    copy();
    streams.synchronize();
    const auto begin = std::chrono::steady_clock::now();
    copy();
    streams.synchronize();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    return static_cast<double>(words * sizeof(uint32_t)) / time.count();
  }

  Agent gpu_;
  PinnedBuffer<uint32_t> host_;
  std::array<DeviceBuffer<uint32_t>, 2> devices_{DeviceBuffer<uint32_t>{gpu_, kWords},
                                                 DeviceBuffer<uint32_t>{gpu_, kWords}};
  uint32_t turn_ = 0;
};

}  // namespace

Answer probe_copy_engines(const support::Device& device) {
  Copies copies(device.gpu);
  nlohmann::ordered_json measured = nlohmann::ordered_json::array();
  std::string text, wrong;
  for (const auto& [by_library, name] :
       {std::pair(true, "the library"), std::pair(false, "ROCr")}) {
    const Found found = copies.run(by_library);
    measured.push_back({{"engines_chosen_by", name},
                        {"right", found.right},
                        {"to_device_gb_per_s", found.to_device},
                        {"two_streams_to_device_gb_per_s", found.two_to_device},
                        {"to_host_gb_per_s", found.to_host},
                        {"overtakes_a_waiting_copy", found.overtakes}});
    text += fmt::format(
        "{}engines chosen by {}: GB/s to the device {:.3g}, by two streams {:.3g}, to the host "
        "{:.3g}; a copy {} another stream's that waits",
        text.empty() ? "" : "; ", name, found.to_device, found.two_to_device, found.to_host,
        found.overtakes ? "overtakes" : "stays behind");
    if (!found.right) wrong += fmt::format("{}{}", wrong.empty() ? "" : " and ", name);
  }
  if (!wrong.empty())
    return {Verdict::differs, "wrong bytes after copies by engines chosen by " + wrong, measured};
  return {Verdict::as_assumed, text, measured};
}

}  // namespace uptempo::hardware
