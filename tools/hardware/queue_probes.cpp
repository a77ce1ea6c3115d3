// Probes of one queue, packet by packet. Signals and memory are declared before the queue, which is
// then destroyed first: a packet that is late uses nothing that has gone.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>

#include <uptempo/aql/amd_abi.hpp>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/memory/buffer.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/runtime/error.hpp>
#include "tools/hardware/probe.hpp"
#include "tools/hardware/raw_queue.hpp"
#include "tools/support/packets.hpp"

namespace uptempo::hardware {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t kRing = 256;
constexpr milliseconds kLongest{5000};
// A processor may store the read index after the completion signal.
constexpr milliseconds kSettles{2};
// The slots that the engine leaves free for a read index in groups (aql::longest_run).
constexpr uint64_t kAllowedBehind = 7;

Answer not_complete(std::string_view packet) {
  return {Verdict::differs,
          fmt::format("{} was not complete after {} s", packet, kLongest.count() / 1000)};
}

// The read index after `index` is complete: `index` + 1 if the processor has passed it.
uint64_t settled_read_index(const RawQueue& queue, uint64_t index) {
  const auto end = std::chrono::steady_clock::now() + kSettles;
  uint64_t found = queue.read_index();
  while (found <= index && std::chrono::steady_clock::now() < end) found = queue.read_index();
  return found;
}

// Whether the read index passes a kernel that still runs. Eight packets without a barrier bit
// follow the kernel, so that an index in groups can pass it, too. Throws Error.
bool passes_running_kernel(const Agent& gpu) {
  const Program program(gpu, builtin_kernels::probes());
  const auto meet = program.kernel<uint32_t*, uint32_t*, uint32_t, uint32_t, uint32_t*>("meet");
  const PinnedBuffer<uint32_t> words(gpu, 96);  // three words in lines of their own
  std::ranges::fill(words.span(), 0u);
  uint32_t *const started = words.data(), *const gate = words.data() + 32;
  const KernargBuffer block(gpu, support::kBlockBytes);
  // Some seconds on hardware, where each poll crosses the bus.
  constexpr uint32_t kPolls = 4'000'000, kRound = 1;
  const Grid one = Grid{1}.by(1);
  support::write_arguments(meet, block.data(), one, {}, started, gate, kRound, kPolls,
                           words.data() + 64);
  const Signal done(SignalKind::interrupt, 1);
  RawQueue queue(gpu, kRing);
  const auto require = [](bool holds, const char* found) {
    if (!holds)
      throw Error({.code = ErrorCode::failed,
                   .status = HSA_STATUS_ERROR,
                   .call = "read-index",
                   .asked = "a kernel that polls a word of host memory",
                   .found = found,
                   .remedy = "look at the kernel log"});
  };

  const uint64_t index = queue.publish(aql::to_packet(support::dispatch_of(
      meet.info(), one, block.data(),
      {aql::Barrier::on, aql::FenceScope::system, aql::FenceScope::system}, done.handle())));
  for (int i = 0; i < 8; ++i) queue.publish(barrier_for(nullptr, aql::Barrier::off));
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (__atomic_load_n(started, __ATOMIC_ACQUIRE) != kRound) {
    require(std::chrono::steady_clock::now() < end, "it has not started");
    std::this_thread::yield();
  }
  std::this_thread::sleep_for(milliseconds(20));
  const bool passed = queue.read_index() > index;
  __atomic_store_n(gate, kRound, __ATOMIC_RELEASE);
  require(is_zero_within(done, milliseconds(10000)), "it did not end after the word was set");
  return passed && words[64] == 1;  // 1: it saw the word, so it was running
}

}  // namespace

Answer probe_read_index(const support::Device& device) {
  constexpr uint64_t kPackets = 64;
  const Signal done(SignalKind::interrupt, 1);
  RawQueue queue(device.gpu, kRing);
  uint64_t most_behind = 0;
  for (uint64_t i = 0; i < kPackets; ++i) {
    hsa_signal_store_relaxed(done.handle(), 1);
    const uint64_t index = queue.publish(barrier_for(&done));
    if (!is_zero_within(done, kLongest)) return not_complete(fmt::format("packet {}", index));
    const uint64_t found = settled_read_index(queue, index);
    if (found > index + 1)
      return {Verdict::differs,
              fmt::format("the read index is {} after {} packets", found, index + 1)};
    most_behind = std::max(most_behind, index + 1 - found);
  }
  const bool early = passes_running_kernel(device.gpu);
  Answer answer{Verdict::as_assumed,
                "one packet at a time",
                {{"most_packets_behind", most_behind}, {"passes_running_kernels", early}}};
  if (most_behind == 0 && !early) return answer;
  answer.verdict = Verdict::differs;
  answer.text.clear();
  if (most_behind > kAllowedBehind)
    answer.text = fmt::format("it stays {} packets behind; the engine allows for {} only",
                              most_behind, kAllowedBehind);
  else if (most_behind != 0)
    answer.text =
        fmt::format("it stays up to {} packets behind, which the engine allows for", most_behind);
  if (early) {
    if (!answer.text.empty()) answer.text += ". ";
    answer.text += "it passes kernels that still run, which the engine allows for";
  }
  return answer;
}

Answer probe_profiling(const support::Device& device) {
  struct Times {
    bool stored = false, plausible = false;
  };
  uint64_t hz = 0;
  check(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &hz), "hsa_system_get_info");
  const auto now = [] {
    uint64_t ticks = 0;
    hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &ticks);
    return ticks;
  };
  const auto enable = [](const RawQueue& queue) {
    check(hsa_amd_profiling_set_profiler_enabled(queue.handle(), 1),
          "hsa_amd_profiling_set_profiler_enabled");
  };
  const Signal fresh_done(SignalKind::interrupt, 1), first_done(SignalKind::interrupt, 1),
      later_done(SignalKind::interrupt, 1);
  // Publishes a packet and reads its times. Nothing if it does not complete.
  const auto times_of = [&](RawQueue& queue, const Signal& done) -> std::optional<Times> {
    const uint64_t before = now();
    queue.publish(barrier_for(&done));
    if (!is_zero_within(done, kLongest)) return std::nullopt;
    const uint64_t after = now(), tolerance = hz / 1000;  // the clocks are aligned now and then
    Times times{.stored = aql::signal_times(done.handle()).end_ticks != 0};
    if (!times.stored) return times;
    hsa_amd_profiling_dispatch_time_t found{};
    check(hsa_amd_profiling_get_dispatch_time(device.gpu.handle(), done.handle(), &found),
          "hsa_amd_profiling_get_dispatch_time");
    times.plausible = found.start <= found.end && found.start + tolerance >= before &&
                      found.end <= after + tolerance;
    return times;
  };

  RawQueue fresh(device.gpu, kRing), used(device.gpu, kRing);
  enable(fresh);
  const std::optional<Times> at_creation = times_of(fresh, fresh_done);
  if (!times_of(used, first_done)) return not_complete("a packet of a queue without profiling");
  enable(used);
  const std::optional<Times> later = times_of(used, later_done);
  if (!at_creation || !later) return not_complete("a packet of a queue with profiling");

  const nlohmann::ordered_json measured{{"stored_if_enabled_at_creation", at_creation->stored},
                                        {"stored_if_enabled_later", later->stored}};
  if (!at_creation->stored)
    return {Verdict::differs,
            "no times, even if profiling is enabled at once: Timing and TimedEvent will throw",
            measured};
  if (!later->stored)
    return {Verdict::differs,
            "no times if profiling is enabled on a used queue; the engine enables it when it "
            "creates one",
            measured};
  if (!at_creation->plausible || !later->plausible)
    return {Verdict::differs, "the times are not within those of the host", measured};
  return {Verdict::as_assumed, "times are stored in both cases, within those of the host",
          measured};
}

Answer probe_eager_packets(const support::Device& device) {
  constexpr milliseconds kWait{20};
  const Signal first(SignalKind::interrupt, 1), beyond(SignalKind::interrupt, 1);
  RawQueue queue(device.gpu, kRing);
  uint64_t trials = 0, eager = 0;
  // Three packets a trial: every position in a group of eight, and over the end of the ring.
  for (uint64_t index = 0; index < kRing + 24; index += 3, ++trials) {
    hsa_signal_store_relaxed(first.handle(), 1);
    hsa_signal_store_relaxed(beyond.handle(), 1);
    queue.place(index + 1, barrier_for(&beyond));  // its header is valid, but it is not admitted
    queue.place(index, barrier_for(&first));
    queue.admit(index + 1);
    if (!is_zero_within(first, kLongest)) return not_complete("the packet before the write index");
    if (is_zero_within(beyond, kWait)) ++eager;
    queue.place(index + 2, barrier_for(nullptr));
    queue.admit(index + 3);
    if (!is_zero_within(beyond, kLongest))
      return not_complete("a packet that was stored before it was admitted");
  }
  const nlohmann::ordered_json measured{{"trials", trials}, {"taken_beyond_write_index", eager}};
  if (eager != 0)
    return {Verdict::differs,
            fmt::format("a packet with a valid header is taken beyond the write index in {} of {} "
                        "trials, which the engine allows for",
                        eager, trials),
            measured};
  return {Verdict::as_assumed,
          fmt::format("in {} trials the packet beyond it waited until it was admitted", trials),
          measured};
}

}  // namespace uptempo::hardware
