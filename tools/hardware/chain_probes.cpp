#include "tools/hardware/chain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <uptempo/dispatch/batch_submitter.hpp>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/memory/buffer.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/recording/recording.hpp>
#include <uptempo/stream/stream.hpp>
#include "tools/support/statistics.hpp"

namespace uptempo::hardware {
namespace {

constexpr std::chrono::milliseconds kWarmUp{100};  // of each shape
constexpr std::string_view kKernels = "from the first kernel's begin to the last one's end";

// Each word after a chain that begins with 0.
uint32_t expected_of(const ChainShape& shape) {
  uint32_t value = 0;
  for (uint32_t i = 0; i < shape.dispatches; ++i) value = value * 3 + i;
  return value;
}

double us_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

// Waits, then reads the times of the first and the last packet.
ChainTimes finish(std::chrono::steady_clock::time_point begin, const Completion& completion) {
  completion.wait(WaitPolicy::active());
  ChainTimes times{.host_us = us_since(begin)};
  const std::vector<PacketTime> packets = completion.times();
  times.device_us = static_cast<double>(packets.back().end_ns - packets.front().start_ns) / 1000;
  return times;
}

using ChainKernel = Kernel<uint32_t*, uint32_t>;
ChainKernel chain_kernel(const Agent& gpu) {
  return Program(gpu, builtin_kernels::basics()).kernel<uint32_t*, uint32_t>("chain_increment");
}
Grid grid_of(const ChainShape& shape) { return Grid{shape.words()}.by(kChainWorkgroup); }

}  // namespace

Answer run_chains(const Agent& gpu, std::string_view device_time,
                  const std::function<Chain(const ChainShape& shape, uint32_t* words)>& prepare) {
  Copier copier(gpu);
  nlohmann::ordered_json measured = nlohmann::ordered_json::array();
  std::string text;
  for (const ChainShape& shape : kChainShapes) {
    const DeviceBuffer<uint32_t> words(gpu, shape.words());
    std::vector<uint32_t> found(shape.words());
    const Chain chain = prepare(shape, words.data());
    std::vector<double> host_us, device_us;
    const auto begin = std::chrono::steady_clock::now();
    while (host_us.size() < kChainRuns) {
      const bool is_timed = std::chrono::steady_clock::now() - begin > kWarmUp;
      copier.fill(words, 0);
      const ChainTimes times = chain();
      copier.copy(found, words);
      const auto right = std::ranges::count(found, expected_of(shape));
      if (right != shape.words())
        return {
            Verdict::differs,
            fmt::format("{} dispatches of {} workgroups: {} of {} words are wrong",
                        shape.dispatches, shape.workgroups, shape.words() - right, shape.words()),
            measured};
      if (!is_timed) continue;
      host_us.push_back(times.host_us / shape.dispatches);
      device_us.push_back(times.device_us / shape.dispatches);
    }
    const double host = support::median(host_us), on_device = support::median(device_us);
    measured.push_back({{"dispatches", shape.dispatches},
                        {"workgroups", shape.workgroups},
                        {"host_us_per_dispatch", host},
                        {"device_us_per_dispatch", on_device},
                        {"device_time", device_time}});
    text += fmt::format("{}{} x {}: {:.2f} ({:.2f})", text.empty() ? "" : ", ", shape.dispatches,
                        shape.workgroups, on_device, host);
  }
  return {Verdict::as_assumed,
          fmt::format("microseconds per dispatch on the device, {}, and in brackets of the host; "
                      "dispatches x workgroups: {}",
                      device_time, text),
          measured};
}

Answer probe_chain_by_batch(const support::Device& device) {
  const ChainKernel kernel = chain_kernel(device.gpu);
  Queue queue(device.gpu);
  BatchSubmitter batch(queue, {.timing = Timing::batch});
  return run_chains(device.gpu, kKernels, [&](const ChainShape& shape, uint32_t* words) -> Chain {
    return [&, shape, words] {
      const auto begin = std::chrono::steady_clock::now();
      for (uint32_t i = 0; i < shape.dispatches; ++i)
        batch.dispatch(kernel, grid_of(shape), words, i);
      return finish(begin, batch.submit());
    };
  });
}

Answer probe_chain_by_recording(const support::Device& device) {
  const ChainKernel kernel = chain_kernel(device.gpu);
  Queue queue(device.gpu);
  return run_chains(device.gpu, kKernels, [&](const ChainShape& shape, uint32_t* words) -> Chain {
    const auto recording =
        std::make_shared<Recording>(queue, RecordingOptions{.timing = Timing::batch});
    for (uint32_t i = 0; i < shape.dispatches; ++i)
      recording->dispatch(kernel, grid_of(shape), words, i);
    return [&queue, recording] {
      const auto begin = std::chrono::steady_clock::now();
      return finish(begin, recording->replay(queue));
    };
  });
}

}  // namespace uptempo::hardware
