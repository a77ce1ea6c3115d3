// Finds the memory pool for a purpose, and allocates from it.
//
// Thread safety: every function may be called from any thread.
// Lifetime: an Allocation is released by its destructor or by the end of the session, whichever
// comes first.
// Cost: an allocation takes one or more system calls (10-100 us). Do not allocate on a hot path.
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/runtime/agent.hpp"
#include "engine/runtime/owned.hpp"

namespace uptempo {

enum class MemoryKind : uint8_t {
  device,  // the GPU's own memory, coarse-grained: coherent at kernel boundaries only
  pinned,  // host memory that the GPU reads and writes, fine-grained
  // The same, coarse-grained: host and GPU see each other's stores only at system-scope fences.
  pinned_coarse,
  kernarg,  // host memory for kernel arguments: fine-grained, readable by the GPU
};

std::string_view name_of(MemoryKind kind) noexcept;

struct MemoryPool {
  hsa_amd_memory_pool_t handle{};
  hsa_agent_t owner{};
  MemoryKind kind = MemoryKind::device;
  size_t size_bytes = 0;  // of this pool; 0 for a CPU agent without memory
  // Largest allocation. For host memory it may come from other nodes, so this exceeds size_bytes.
  size_t max_allocation_bytes = 0;
  size_t granule_bytes = 0;    // allocation sizes are rounded up to it
  size_t alignment_bytes = 0;  // alignment of every allocation
};

// Returns the pool of this `kind` for the GPU. Host memory comes from the nearest CPU agent that
// has such a pool; CPU agents without memory come last (nearest_host.hpp). Throws Error, which
// lists every pool and why it was rejected.
MemoryPool find_pool(const Agent& gpu, MemoryKind kind);

// An allocation from a pool. The GPU may access it; so may the host, for host kinds. Move-only.
class Allocation {
 public:
  Allocation() = default;
  // Throws Error for 0 bytes, an exhausted pool, or refused access.
  Allocation(const Agent& gpu, MemoryKind kind, size_t size_bytes)
      : Allocation(std::span(&gpu, 1), kind, size_bytes) {}
  // The same for several GPUs, which may all access it. Device memory is the first one's, and host
  // memory the nearest to it. Also throws Error for no GPU, and for GPUs that cannot reach it, each
  // of which is named.
  Allocation(std::span<const Agent> gpus, MemoryKind kind, size_t size_bytes);

  void* data() const noexcept { return reinterpret_cast<void*>(owned_.handle()); }
  size_t size_bytes() const noexcept { return data() == nullptr ? 0 : size_bytes_; }
  // The first GPU that it was made for: the owner of device memory. Null if empty.
  hsa_agent_t gpu() const noexcept { return data() == nullptr ? hsa_agent_t{0} : gpu_; }
  // False once the session has ended; data() is then invalid.
  bool alive() const noexcept { return owned_.alive(); }
  // Drops ownership; the memory lives until the end of the Runtime, because work in flight may
  // still use it.
  void leave_to_session() noexcept { owned_.leave_to_session(); }

 private:
  Owned owned_;
  size_t size_bytes_ = 0;
  hsa_agent_t gpu_{0};
};

}  // namespace uptempo
