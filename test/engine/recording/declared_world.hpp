// Recordings of kernels with declared accesses over a double device, and FencePlans of the same
// accesses to compare their plans with.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <uptempo/fences/fence_plan.hpp>
#include <uptempo/program/metadata.hpp>
#include <uptempo/recording/recording.hpp>
#include "test/engine/recording/recording_bench.hpp"
#include "test/support/catch.hpp"

namespace uptempo::test {

inline constexpr uint32_t kLength = 64;
using Words = std::array<uint32_t, kLength>;

using Step = Kernel<uint32_t, const uint32_t*, uint32_t*>;
using StepNode = Node<uint32_t, const uint32_t*, uint32_t*>;

inline DoubleKernel step_description() {
  return {.name = "step",
          .object = 0x7000,
          .kernarg_bytes = 24,
          .arguments = {argument(ArgumentKind::by_value, 0, 4),
                        argument(ArgumentKind::global_buffer, 8, 8),
                        argument(ArgumentKind::global_buffer, 16, 8)},
          .code = {"gfx90a", 64, 5}};
}
// A kernel of a number, an address that it reads and one that it writes.
inline Step step_kernel() {
  return kernel_of<uint32_t, const uint32_t*, uint32_t*>(step_description());
}

inline StepNode record_step(Recording& recording, uint32_t number, const uint32_t* in,
                            uint32_t* out) {
  return recording.dispatch(step_kernel(), Grid{kLength}, number, in, out)
      .reads(in, kLength)
      .writes(out, kLength);
}

inline std::vector<aql::HeaderFlags> flags_of(std::span<const PacketPlan> plans) {
  std::vector<aql::HeaderFlags> flags;
  for (const PacketPlan& plan : plans) flags.push_back(plan.flags);
  return flags;
}

// Packets in the order of the ring: a processor may complete overlapping ones in another.
inline std::vector<aql::Packet64> packets_of(DoubleDevice& device) {
  auto completed = device.processor().completed();
  std::ranges::sort(completed, {}, &Completed::index);
  std::vector<aql::Packet64> packets;
  for (const Completed& each : completed) packets.push_back(each.packet);
  return packets;
}

inline std::vector<aql::HeaderFlags> flags_of(std::span<const aql::Packet64> packets) {
  std::vector<aql::HeaderFlags> flags;
  for (const aql::Packet64& packet : packets) flags.push_back(aql::header_flags(packet.header()));
  return flags;
}

struct Access {
  const void* data;
  size_t bytes;
  bool writes;
};
// The plan of dispatches with these accesses.
inline std::vector<aql::HeaderFlags> planned(const std::vector<std::vector<Access>>& dispatches) {
  FencePlan plan;
  for (const std::vector<Access>& accesses : dispatches) {
    FencePlan::Dispatch dispatch = plan.dispatch();
    dispatch.touches_nothing();  // besides these
    for (const Access& access : accesses) {
      const auto* const bytes = static_cast<const std::byte*>(access.data);
      if (access.writes) {
        dispatch.writes(const_cast<std::byte*>(bytes), access.bytes);
      } else {
        dispatch.reads(bytes, access.bytes);
      }
    }
  }
  return flags_of(plan.packets());
}
inline std::vector<Access> step(const void* in, const void* out) {
  return {{in, sizeof(Words), false}, {out, sizeof(Words), true}};
}

// Replays, waits, and returns the flags of the replay's packets as the device has seen them.
inline std::vector<aql::HeaderFlags> replay(RecordingBench& bench, Recording& recording) {
  CHECK(recording.replay(bench.device.queue(), soon()).wait(soon(), kActiveWait));
  const std::vector<aql::Packet64> packets = packets_of(bench.device);
  REQUIRE(packets.size() >= recording.size());
  return flags_of(std::span(packets).last(recording.size()));
}

}  // namespace uptempo::test
