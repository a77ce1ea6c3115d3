// Memory pools: which of them serves which use, and allocations from them.
//
// Thread safety: all functions from any thread. Lifetime: an Allocation is given back by its destructor, or by the end of the
// session, whichever comes first. Cost: an allocation is a system call or more (10-100 us); none belongs on a hot path.
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/runtime/agent.hpp"
#include "engine/runtime/session.hpp"

namespace uptempo {

enum class MemoryKind : uint8_t {
  device,         // the GPU's own memory, coarse-grained: coherent at kernel boundaries only
  pinned,         // host memory that the GPU reads and writes, fine-grained
  pinned_coarse,  // the same, coarse-grained: host and GPU see each other's stores at fences of system scope only
  kernarg,        // host memory for kernel arguments: fine-grained, readable by the GPU
};

std::string_view name_of(MemoryKind kind) noexcept;

struct MemoryPool {
  hsa_amd_memory_pool_t handle{};
  hsa_agent_t owner{};
  MemoryKind kind = MemoryKind::device;
  size_t size_bytes = 0;
  size_t granule_bytes = 0;    // allocations are rounded up to it
  size_t alignment_bytes = 0;  // of every allocation
};

// The pool that serves `kind` for that GPU. Throws Error that lists every pool and why it was rejected.
MemoryPool find_pool(const Agent& gpu, MemoryKind kind);

// Bytes of a pool that the GPU, and for host kinds also the host, may access. Move-only.
class Allocation {
 public:
  Allocation() = default;
  // Throws Error for 0 bytes, a pool exhausted, or access refused.
  Allocation(const Agent& gpu, MemoryKind kind, size_t size_bytes);

  void* data() const noexcept { return reinterpret_cast<void*>(owned_.handle()); }
  size_t size_bytes() const noexcept { return data() == nullptr ? 0 : size_bytes_; }
  // False once the session has ended: data() is then a void address.
  bool alive() const noexcept { return owned_.alive(); }
  // Gives up the memory, which lives on until the end of the Runtime: something in flight may still use it.
  void leave_to_session() noexcept { owned_.leave_to_session(); }

 private:
  Owned owned_;
  size_t size_bytes_ = 0;
};

}  // namespace uptempo
