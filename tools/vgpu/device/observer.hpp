// The interface through which the fence checker sees every memory access of the shader.
//
// The gfx9 core takes its observer as a compile-time policy (gfx9/observe.hpp). Unobserved
// instructions contain no code for the hook. Observed instructions call the dispatch's
// MemoryObserver before they access memory.
//
// Thread safety: all workers call it concurrently, each for the waves that it runs.
#pragma once

#include <array>
#include <cstdint>

#include "device/caches/caching.hpp"
#include "device/memory.hpp"

namespace uptempo::vgpu {

struct ObservedAccess {
  Access access = Access::read;  // read, write, atomic
  bool scalar = false;           // through the scalar cache: one address, lanes = 1
  // How far a vector access reaches (gfx9/access_scope.hpp). Atomics: at least the agent.
  AccessScope scope = AccessScope::wave;
  uint32_t size_bytes = 0;  // per lane
  uint64_t lanes = 0;       // bit i: lane i takes part
  // [64], valid during the call. Entries of lanes that take no part are undefined.
  const GpuAddress* address = nullptr;
  uint64_t dispatch_id = 0;
  std::array<uint32_t, 3> workgroup{};
  uint32_t wave = 0;  // in the workgroup
  GpuAddress instruction = 0;
};

class MemoryObserver {
 public:
  virtual ~MemoryObserver() = default;

  // Global and private memory. LDS is not reported, since no other workgroup can access it. A
  // multi-dword access to private memory, whose dwords are not contiguous, is reported dword by
  // dword.
  virtual void access(const ObservedAccess& access) noexcept = 0;

  // A wave wrote L2 back (buffer_wbl2), which compilers emit for a release of system scope: what it
  // stores next may tell the host of what it has stored.
  virtual void wrote_back() noexcept {}
};

}  // namespace uptempo::vgpu
