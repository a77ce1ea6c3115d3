// Stands in for gfx9/: a "kernel" is a C++ function that the test wrote, so that scheduling and packet processing are tested without instructions.
//
// Linked into the test, its definitions take the place of the gfx9 library's.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu::test {

using WorkgroupId = std::array<uint32_t, 3>;

// What one call of a kernel's body sees. A body is called once per slice of its workgroup, with turn 0, 1, 2...
struct Slice {
  gfx9::Executor& executor;
  const gfx9::DispatchState& dispatch;
  WorkgroupId id;
  uint32_t scratch_slot;
  unsigned turn;
};
using Body = std::function<gfx9::Workgroup::Result(const Slice&)>;

// Lies where a kernel object would lie.
struct ScriptedKernel {
  bool legacy = false;  // passes for a blit kernel of ROCr
  uint32_t group_segment_bytes = 0;
  uint32_t private_segment_bytes = 0;
  uint32_t kernarg_bytes = 0;
  QueueError rejected = QueueError::none;
  uint32_t instructions_per_slice = 64;
  Body body;
};

}  // namespace uptempo::vgpu::test
