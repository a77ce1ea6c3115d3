// Who wants to see every access of the shader to memory: the seam of the fence checker.
//
// The gfx9 core takes its observer as a compile-time policy (gfx9/observe.hpp). Instructions are translated either unobserved, where
// the hook is no code at all, or observed, where each access calls the dispatch's MemoryObserver before memory is touched.
//
// Thread safety: called by each worker for the waves that it runs, by several at once.
#pragma once

#include <array>
#include <cstdint>

#include "device/memory.hpp"

namespace uptempo::vgpu {

struct ObservedAccess {
  Access access = Access::read;  // read, write, atomic
  bool scalar = false;           // through the scalar cache: one address, lanes = 1
  bool bypasses_l1 = false;      // a vector load with GLC
  uint32_t size_bytes = 0;  // per lane
  uint64_t lanes = 0;       // bit i: lane i takes part
  const GpuAddress* address =
      nullptr;  // [64]; entries of lanes that take no part mean nothing. Valid during the call
  uint64_t dispatch_id = 0;
  std::array<uint32_t, 3> workgroup{};
  uint32_t wave = 0;  // in the workgroup
  GpuAddress instruction = 0;
};

class MemoryObserver {
 public:
  virtual ~MemoryObserver() = default;

  // Global and private memory; LDS, which no other workgroup can see, is not reported. A multi-dword access to private memory,
  // whose dwords do not lie together, is reported dword by dword.
  virtual void access(const ObservedAccess& access) noexcept = 0;
};

}  // namespace uptempo::vgpu
