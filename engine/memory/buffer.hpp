// Typed RAII buffers over memory pools.
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
// A buffer made for one agent is that agent's alone: a kernel of another GPU that uses it faults,
// and a copy by a stream of another GPU is refused. allow_access() (access.hpp) changes the
// agents of a buffer later.
//
// Contents are undefined until written.
//
// Thread safety: thread-compatible.
// Lifetime: until the destructor or the end of the Runtime. Kernels and copies that use the buffer
// must have completed before either. Move-only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "engine/memory/pool.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo {

namespace detail {

// Throws Error if the product overflows.
inline size_t bytes_for(size_t count, size_t size_bytes) {
  if (count > std::numeric_limits<size_t>::max() / size_bytes) {
    throw Error(
        {.status = HSA_STATUS_ERROR_INVALID_ALLOCATION,
         .call = "buffer",
         .asked = std::to_string(count) + " elements of " + std::to_string(size_bytes) + " bytes",
         .found = "more than the address space holds",
         .remedy = "request fewer elements"});
  }
  return count * size_bytes;
}

}  // namespace detail

template <class T>
class DeviceBuffer {
  static_assert(std::is_trivially_copyable_v<T>, "device memory is copied byte for byte");

 public:
  DeviceBuffer() = default;
  DeviceBuffer(const Agent& gpu, size_t count)
      : memory_(gpu, MemoryKind::device, detail::bytes_for(count, sizeof(T))) {}
  DeviceBuffer(std::span<const Agent> gpus, size_t count)
      : memory_(gpus, MemoryKind::device, detail::bytes_for(count, sizeof(T))) {}

  // An address for kernels and copies, not for the host.
  T* data() const noexcept { return static_cast<T*>(memory_.data()); }
  size_t size() const noexcept { return memory_.size_bytes() / sizeof(T); }
  size_t size_bytes() const noexcept { return memory_.size_bytes(); }
  // The first agent that it was made for.
  hsa_agent_t gpu() const noexcept { return memory_.gpu(); }
  // Returns the allocation; the buffer is then empty.
  Allocation release() noexcept { return std::move(memory_); }

 private:
  Allocation memory_;
};

template <class T>
class PinnedBuffer {
  static_assert(std::is_trivially_copyable_v<T>, "device memory is copied byte for byte");

 public:
  using value_type = T;

  PinnedBuffer() = default;
  PinnedBuffer(const Agent& gpu, size_t count)
      : memory_(gpu, MemoryKind::pinned, detail::bytes_for(count, sizeof(T))) {}
  PinnedBuffer(std::span<const Agent> gpus, size_t count)
      : memory_(gpus, MemoryKind::pinned, detail::bytes_for(count, sizeof(T))) {}

  T* data() const noexcept { return static_cast<T*>(memory_.data()); }
  size_t size() const noexcept { return memory_.size_bytes() / sizeof(T); }
  size_t size_bytes() const noexcept { return memory_.size_bytes(); }
  // The first agent that it was made for.
  hsa_agent_t gpu() const noexcept { return memory_.gpu(); }
  T& operator[](size_t i) const noexcept { return data()[i]; }
  T* begin() const noexcept { return data(); }
  T* end() const noexcept { return data() + size(); }
  std::span<T> span() const noexcept { return {data(), size()}; }
  // Returns the allocation; the buffer is then empty.
  Allocation release() noexcept { return std::move(memory_); }
  void leave_to_session() noexcept { memory_.leave_to_session(); }  // see pool.hpp

 private:
  Allocation memory_;
};

// One or more blocks for kernel arguments. data() is at least 64-byte aligned.
class KernargBuffer {
 public:
  KernargBuffer() = default;
  KernargBuffer(const Agent& gpu, size_t size_bytes)
      : memory_(gpu, MemoryKind::kernarg, size_bytes) {}

  std::byte* data() const noexcept { return static_cast<std::byte*>(memory_.data()); }
  size_t size_bytes() const noexcept { return memory_.size_bytes(); }
  std::span<std::byte> span() const noexcept { return {data(), size_bytes()}; }
  bool alive() const noexcept { return memory_.alive(); }
  void leave_to_session() noexcept { memory_.leave_to_session(); }  // see pool.hpp

 private:
  Allocation memory_;
};

}  // namespace uptempo
