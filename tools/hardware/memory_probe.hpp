// Whether a kernel sees what the host has written since an earlier kernel has read it.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>

#include <uptempo/runtime/agent.hpp>
#include "tools/hardware/probe.hpp"

namespace uptempo::hardware {

struct Reads {
  uint64_t stale = 0, of = 0;
  Reads& operator+=(const Reads& other) noexcept {
    stale += other.stale;
    of += other.of;
    return *this;
  }
};

// By the reader's acquire: none, agent scope, system scope.
struct StaleReads {
  std::array<Reads, 3> data{}, kernargs{};
};

// Differs if a read is stale after an acquire of system scope, or of agent scope where the row says
// that it suffices. `on_device`: the memory is the GPU's.
Answer answer_of_stale_reads(const StaleReads& found, const MemoryModel& model, bool on_device);

}  // namespace uptempo::hardware
