// A ring that is always full, through the writer that the engine uses.
//
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <span>

#include "tools/hardware/probe.hpp"

namespace uptempo::hardware {

// `ran[b]`: how many packets with kernarg block b the device has run. Packet i of `packets` has
// block i modulo the number of blocks. Differs if one was lost, or was run once more.
Answer answer_of_ring(std::span<const uint32_t> ran, uint64_t packets, double ns_per_packet);

}  // namespace uptempo::hardware
