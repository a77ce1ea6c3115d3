#include "tools/fence_scope/run/run_queues.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "tools/support/program.hpp"

namespace uptempo::fence_scope {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 60s;
// An interrupt adds 5 to 50 us to what it ends, so the host waits actively for runs up to this
// duration.
constexpr auto kSpin = 5ms;

}  // namespace

RunQueues::RunQueues(const Agent& gpu, const Sequence& sequence, TimingMode timing) {
  for (const uint32_t number : kQueues) {
    used_[number] = is_used(sequence, number);
    const uint64_t packets = most_packets(sequence, number);
    if (packets > gpu.properties().queue_max_packets)
      throw support::UsageError(fmt::format(
          "steps: queue {1} needs {0} packets, but this device's queues hold at most {2}", packets,
          number, gpu.properties().queue_max_packets));
    // Queue 0 also has the packets before and after a run.
    const uint64_t size =
        std::bit_ceil(std::max<uint64_t>(packets, 2 * sequence.buffers.size() + 1));
    queues_.emplace_back(gpu, static_cast<uint32_t>(std::max<uint64_t>(size, 64)), kPatience);
    if (timing != TimingMode::none) queues_.back().enable_profiling();
  }
}

void RunQueues::wait(const Sequence& sequence, const SignalHandles& signals) {
  for (const uint32_t queue : kQueues)
    if (used_[queue]) queues_[queue].wait(signals.closing[queue], "the end of a run", kSpin);
  for (size_t i = 0; i < sequence.steps.size(); ++i)
    if (sequence.steps[i].kind == Step::Kind::copy)
      queues_[0].wait(signals.of_step[i], "a copy of a run", kSpin);
}

void RunQueues::flush() {
  for (support::PacketQueue& queue : queues_) queue.flush();
}

}  // namespace uptempo::fence_scope
