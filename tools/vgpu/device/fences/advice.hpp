// Finds fences and barrier bits of a run that could have been narrower. Advice is never a finding.
//
// The adviser narrows one fence or bit and judges the run again. It keeps the narrowing under two
// conditions. Each event must bring the same findings as before (none more, none fewer), by the
// specification too. No pair of tasks that packets ordered before may need the assumption that it
// synchronised inside kernels. The next narrowing starts from the result, so all advice of a run
// holds together. It holds only for that run: another run may touch other bytes.
//
// Order: the highest estimated cost first (cost.hpp); at equal cost barrier bits, then acquires,
// then releases; for one fence, the widest step first. Packets of one queue with the same kernel
// and header are narrowed together. Packets to which a changed verdict points are widened again,
// until no verdict is changed. The result is a good choice of packets, not always the largest.
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
  FenceScope to = FenceScope::none;  // of a fence; a barrier bit is cleared
  uint32_t queue = 0;                // as in traces
  std::string kernel;                // "barrier packet" for packets other than dispatches
  Packet header;                     // the header of these packets
  std::vector<uint64_t> packets;     // their indices, ascending
  uint64_t of = 0;                   // number of packets with this kernel and header
  double saved_ns = 0;               // estimate for all of them together
};

struct Advices {
  std::vector<Advice> list;  // highest saving first
  // Some were not tried, since the run was too long.
  bool incomplete = false;
};

constexpr uint64_t kAdviceBudget = 10'000'000;
constexpr size_t kListedPackets = 64;

// `budget`: how many events and pages may be judged in total, at 1 to 4 us each.
Advices advise(Recording run, const DeviceDescription& device, uint64_t budget = kAdviceBudget);

// {"advice":"barrier","queue":1,"kernel":"sum.kd",
//  "header":{"barrier":true,"acquire":"agent","release":"agent"},"to":"clear","packets":[3,4],
//  "count":2,"of":120,"saved_ns":1200,"basis":"estimate","device":"gfx90a"}
// "to": clear, or a scope. Lists at most kListedPackets packets; "count" is their number.
std::string to_json(const Advice& advice, const DeviceDescription& device);

// The same as a sentence.
std::string to_sentence(const Advice& advice, const DeviceDescription& device);

}  // namespace uptempo::vgpu::fences
