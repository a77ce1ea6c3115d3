// Memory for GPUs: typed RAII buffers, the allocations and pools below them, and access of further
// agents.
//
//   DeviceBuffer<uint32_t> keys{gpu, 32768};  the GPU's memory; copies access it, the host does not
//   PinnedBuffer<uint32_t> host{gpu, 32768};  host memory that the GPU and copy engines reach
//                                             directly
//   KernargBuffer          args{gpu, 256};    host memory for kernel arguments
//
// Several GPUs: a buffer made for a span of agents is the first one's, and all of them may access
// it.
//
//   DeviceBuffer<float> halo{std::array{left, right}, n};  memory of `left`, also for `right`
//   PinnedBuffer<float> sums{runtime.gpus(), n};           host memory that every GPU reaches
//
// A buffer made for one agent is that agent's alone: a kernel or copy engine of another GPU that
// uses it faults, which ends the queues of that GPU, and a copy by a stream of another GPU is
// refused. allow_access() changes the agents of a buffer later.
//
// Contents are undefined until written.
//
// Thread safety: buffers and allocations are thread-compatible. Every function may be called from
// any thread; access to one allocation is changed by one call at a time.
// Lifetime: until the destructor or the end of the Runtime. Kernels and copies that use the memory
// must have completed before either. Move-only.
// Cost: an allocation takes one or more system calls (10-100 us), and allow_access() one per agent.
// Do not allocate on a hot path.
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <uptempo/runtime/agent.hpp>
#include <uptempo/runtime/owned.hpp>

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
  size_t size_bytes = 0;  // of this pool; 0 for a CPU agent without memory
  // Largest allocation. For host memory it may come from other nodes, so this exceeds size_bytes.
  size_t max_allocation_bytes = 0;
};

// Returns the pool of this `kind` for the GPU. Host memory comes from the CPU agent with the
// shortest link to the GPU that has such a pool; CPU agents without memory come last. Throws Error,
// which lists every pool and why it was rejected.
MemoryPool find_pool(const Agent& gpu, MemoryKind kind);

// An allocation from a pool. The GPU may access it; so may the host, for host kinds.
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

namespace detail {
// Throws Error if the product overflows.
size_t bytes_for(size_t count, size_t element_bytes);
}  // namespace detail

// An allocation of `count` elements.
template <class T, MemoryKind kKind>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>, "device memory is copied byte for byte");
  static constexpr bool kIsHost = kKind != MemoryKind::device;

 public:
  using value_type = T;

  Buffer() = default;
  Buffer(const Agent& gpu, size_t count) : Buffer(std::span(&gpu, 1), count) {}
  Buffer(std::span<const Agent> gpus, size_t count)
      : memory_(gpus, kKind, detail::bytes_for(count, sizeof(T))) {}

  // At least 64-byte aligned. Of a DeviceBuffer, an address for kernels and copies, not the host.
  T* data() const noexcept { return static_cast<T*>(memory_.data()); }
  size_t size() const noexcept { return memory_.size_bytes() / sizeof(T); }
  size_t size_bytes() const noexcept { return memory_.size_bytes(); }
  T& operator[](size_t i) const noexcept requires(kIsHost) { return data()[i]; }
  T* begin() const noexcept requires(kIsHost) { return data(); }
  T* end() const noexcept requires(kIsHost) { return data() + size(); }
  std::span<T> span() const noexcept requires(kIsHost) { return {data(), size()}; }

  // As of Allocation.
  hsa_agent_t gpu() const noexcept { return memory_.gpu(); }
  bool alive() const noexcept { return memory_.alive(); }
  void leave_to_session() noexcept { memory_.leave_to_session(); }
  // Returns the allocation; the buffer is then empty.
  Allocation release() noexcept { return std::move(memory_); }

 private:
  Allocation memory_;
};

template <class T>
using DeviceBuffer = Buffer<T, MemoryKind::device>;
template <class T>
using PinnedBuffer = Buffer<T, MemoryKind::pinned>;
using KernargBuffer = Buffer<std::byte, MemoryKind::kernarg>;

// True if `agent` can be granted access to device memory of `owner`
// (hsa_amd_agent_memory_pool_get_info does not return NEVER_ALLOWED).
bool can_reach(const Agent& agent, const Agent& owner);
// True if the host can: a large BAR, or an APU.
bool host_can_reach(const Agent& owner);

// Grants these agents access to `memory`: an allocation of `owner`'s device memory, or of host
// memory that was pinned for `owner`. Replaces the agents of the previous call; the owner keeps its
// access. Throws Error for memory of another GPU than `owner`, and for agents that cannot reach the
// memory, which it names; then nothing changes.
//
// ROCr divides blocks of 2 MiB among smaller allocations. They share access: an agent that is
// granted access to one keeps it for all others in the block (ROCr, MemoryRegion::AllowAccess).
void allow_access(const Agent& owner, const void* memory, std::span<const Agent> agents);
// Grants the host access to device memory. Agents that have access keep it. Throws Error if the
// host cannot reach the memory.
void allow_host_access(const Agent& owner, const void* memory);

// True if the GPU may access this memory now: memory that HSA has allocated or pinned
// (hsa_amd_pointer_info, a lookup). Throws Error if ROCr does not answer.
bool has_access(hsa_agent_t agent, const void* memory);
inline bool has_access(const Agent& agent, const void* memory) {
  return has_access(agent.handle(), memory);
}

}  // namespace uptempo
