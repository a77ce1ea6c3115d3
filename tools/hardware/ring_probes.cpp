#include "tools/hardware/ring_probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include <uptempo/kernels/basics.hpp>
#include <uptempo/memory/buffer.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/stream/stream.hpp>
#include "tools/support/packet_queue.hpp"
#include "tools/support/packets.hpp"

namespace uptempo::hardware {
namespace {

constexpr uint64_t kPackets = 1'000'000;
// Prime, so that a slot never meets the block of its last packet: a packet that is run once more
// counts in another place than the one that it replaces.
constexpr uint64_t kBlocks = 61;
constexpr size_t kAtOnce = 32;

Answer keep_full(const support::Device& device, uint32_t packets) {
  const Agent& gpu = device.gpu;
  support::PacketQueue queue(gpu, packets, std::chrono::seconds(10));
  if (queue.ring_size() != packets)
    return {Verdict::not_asked,
            fmt::format("the agent's smallest ring has {} packets", queue.ring_size())};

  const Program program(gpu, builtin_kernels::basics());
  const auto count = program.kernel<uint32_t*>("count_work_items");
  const DeviceBuffer<uint32_t> counters(gpu, kBlocks);
  const PinnedBuffer<uint32_t> found(gpu, kBlocks);
  Copier copier(gpu);
  copier.fill(counters, 0);
  const Grid one = Grid{1}.by(1);
  const KernargBuffer blocks(gpu, kBlocks * support::kBlockBytes);
  const auto block = [&](uint64_t number) { return blocks.data() + number * support::kBlockBytes; };
  for (uint64_t i = 0; i < kBlocks; ++i)
    support::write_arguments(count, block(i), one, queue.facts(), counters.data() + i);
  queue.flush();

  const auto begin = std::chrono::steady_clock::now();
  std::vector<aql::Packet64> next(kAtOnce);
  for (uint64_t i = 0; i < kPackets; i += kAtOnce) {
    const size_t many = std::min<uint64_t>(kAtOnce, kPackets - i);
    for (size_t k = 0; k < many; ++k)
      next[k] = aql::to_packet(
          support::dispatch_of(count.info(), one, block((i + k) % kBlocks),
                               {aql::Barrier::off, aql::FenceScope::none, aql::FenceScope::none}));
    queue.publish({next.data(), many});
  }
  queue.flush();
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
  copier.copy(found, counters);
  return answer_of_ring(found.span(), kPackets, time.count() / kPackets);
}

}  // namespace

Answer answer_of_ring(std::span<const uint32_t> ran, uint64_t packets, double ns_per_packet) {
  for (uint64_t i = 0; i < ran.size(); ++i) {
    const uint64_t expected = packets / ran.size() + (i < packets % ran.size() ? 1 : 0);
    if (ran[i] != expected)
      return {Verdict::differs,
              fmt::format("{} packets with kernarg block {} ran, but {} were published", ran[i], i,
                          expected)};
  }
  return {Verdict::as_assumed,
          fmt::format("{} packets, {:.0f} ns each", packets, ns_per_packet),
          {{"packets", packets}, {"ns_per_packet", ns_per_packet}}};
}

Answer probe_ring_of_64(const support::Device& device) { return keep_full(device, 64); }
Answer probe_ring_of_256(const support::Device& device) { return keep_full(device, 256); }

}  // namespace uptempo::hardware
