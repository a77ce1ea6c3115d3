// Estimates the cost of a run's fences and barrier bits on hardware from the bytes that they move.
// Never a measurement.
//
// * An acquire: the lines that later packets read again although the caches had held them. Lines
//   lost from the L1 caches come from L2, lines lost from L2 come from memory. Not counted when two
//   consecutive acquires dropped them, since narrowing one would not bring them back.
// * A release of system scope: the dirty lines of L2 that it writes back. With several L2s a
//   release of agent scope writes the same lines back, with one L2 it moves nothing.
// * A barrier bit: the time for which the dispatch could have overlapped the one before it. This is
//   the shorter of the times that memory needs for the bytes of either, times the share of its
//   waves that fit beside the other dispatch. Launch latencies are not known and not counted.
//
// The caches are those of caching.hpp, limited by their size. The rates are those of the device's
// description.
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
  double acquire_system_ns = 0;  // additional cost of system scope: L2
  double release_agent_ns = 0;   // of a release of agent scope or wider, with several L2s
  double release_system_ns = 0;  // additional cost of system scope
};

// By actor and packet index. Packets without an entry cost nothing.
using PacketCosts = std::map<std::pair<ActorId, uint64_t>, PacketCost>;

PacketCosts estimate_costs(const Recording& run, const DeviceDescription& device);

}  // namespace uptempo::vgpu::fences
