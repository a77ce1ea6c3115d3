// What the fences and barrier bits of a run cost on hardware: an estimate from the bytes that they move, never a measurement.
//
// * An acquire: the lines that packets behind it read again though the caches had them: out of L2 for those that the L1 caches lost, out of
//   memory for those that L2 lost. Not counted when two acquires in a row took them: narrowing one would not bring them back.
// * A release of system scope: the dirty lines of L2 that it writes back. (One of agent scope moves nothing on gfx9.)
// * A barrier bit: the time for which the dispatch could have run beside the one before it: the shorter of the times that memory needs for the
//   bytes of either, times the share of its waves for which the other one leaves room. Launch latencies are not known and not counted.
//
// The caches are those of caching.hpp, bounded by their size; the rates are those of the device's description.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "device/description.hpp"
#include "device/fences/journal.hpp"

namespace uptempo::vgpu::fences {

struct PacketCost {
  double barrier_ns = 0;
  double acquire_agent_ns = 0;   // of an acquire of agent scope or wider: L1
  double acquire_system_ns = 0;  // and what system scope adds: L2
  double release_system_ns = 0;
};

// By actor and packet index; packets that are not in it cost nothing.
using PacketCosts = std::map<std::pair<ActorId, uint64_t>, PacketCost>;

PacketCosts estimate_costs(const Recording& run, const DeviceDescription& device);

}  // namespace uptempo::vgpu::fences
