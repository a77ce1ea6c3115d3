// Replaces gfx9/ in tests: a "kernel" is a C++ function of the test, so scheduling and packet
// processing are tested without instructions. Linked into the test, these definitions replace those
// of the gfx9 library.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu::test {

using WorkgroupId = std::array<uint32_t, 3>;

// Argument of a kernel's body, which is called once per slice of its workgroup, with turn 0, 1,
// 2...
struct Slice {
  gfx9::Executor& executor;
  const gfx9::DispatchState& dispatch;
  WorkgroupId id;
  uint32_t scratch_slot;
  unsigned turn;
  const ComputeUnitSet& units;
};
using Body = std::function<gfx9::Workgroup::Result(const Slice&)>;

// Located where a kernel object would be.
struct ScriptedKernel {
  bool legacy = false;  // is treated as a blit kernel of ROCr
  uint32_t group_segment_bytes = 0;
  uint32_t private_segment_bytes = 0;
  uint32_t kernarg_bytes = 0;
  uint32_t vgprs = 0;
  uint32_t preload_dwords = 0, preload_offset_bytes = 0;
  QueueError rejected = QueueError::none;
  uint32_t instructions_per_slice = 64;
  Body body;
};

}  // namespace uptempo::vgpu::test
