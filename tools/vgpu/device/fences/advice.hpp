// Which fences and barrier bits of a run could have been narrower: advice, never a finding.
//
// A run is judged again with one of them narrowed. If each event brings the same findings as before (none more, none fewer), by the specification
// too, and no pair of tasks has to be presumed to have ordered itself inside kernels that was ordered by packets before, the narrowing stays, and the
// next one is tried on top of it. So all advice of a run holds together. It holds for that run: another one may touch other bytes.
//
// What costs most by estimate (cost.hpp) is tried first, barrier bits ahead of acquires ahead of releases where that is equal; of a fence, the widest step first. Packets of one queue with the same kernel and header are
// narrowed together; those that a changed verdict points to are widened again, until none is changed. That is a good choice of
// packets, not always the largest.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/description.hpp"
#include "device/fences/journal.hpp"

namespace uptempo::vgpu::fences {

struct Advice {
  enum class Part : uint8_t { barrier, acquire, release };
  Part part = Part::barrier;
  FenceScope to = FenceScope::none;    // of a fence; barrier bits are cleared
  uint32_t queue = 0;             // as in traces
  std::string kernel;                  // "barrier packet" for packets that are no dispatches
  Packet header;                       // that these packets have
  std::vector<uint64_t> packets;  // their indices, ascending
  uint64_t of = 0;                // how many packets there are with this kernel and header
  double saved_ns = 0;                 // by estimate, all of them together
};

struct Advices {
  std::vector<Advice> list;  // what saves most comes first
  // Some were not tried: the run was too long.
  bool incomplete = false;
};

constexpr uint64_t kAdviceBudget = 10'000'000;
constexpr size_t kListedPackets = 64;

// `budget`: how many events and pages may be judged in all, 1 to 4 us each.
Advices advise(Recording run, const DeviceDescription& device, uint64_t budget = kAdviceBudget);

// {"advice":"barrier","queue":1,"kernel":"sum.kd","header":{"barrier":true,"acquire":"agent","release":"agent"},"to":"clear",
//  "packets":[3,4],"count":2,"of":120,"saved_ns":1200,"basis":"estimate","device":"gfx90a"}
// "to": clear, or a scope. At most kListedPackets packets are listed; "count" has their number.
std::string to_json(const Advice& advice, const DeviceDescription& device);

// The same for people.
std::string to_sentence(const Advice& advice, const DeviceDescription& device);

}  // namespace uptempo::vgpu::fences
