// KernargMemory and DeviceWrites: memory for kernel arguments, and the step that makes the host's
// stores to it visible to the GPU. kernarg_placement.hpp gives the rules. Private to engine.
//
// Thread safety: thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include <uptempo/aql/store_fence.hpp>
#include <uptempo/memory/buffer.hpp>
#include <uptempo/memory/kernarg_placement.hpp>
#include <uptempo/runtime/counters.hpp>

namespace uptempo::detail {

// Memory for kernel arguments of an agent, or host memory for queues without ROCr. 64-byte aligned;
// contents undefined. Move-only.
class KernargMemory {
 public:
  KernargMemory() = default;
  // Rounds the size up to whole lines. `on_device`: in the agent's memory, written by the host.
  // Throws Error or std::bad_alloc.
  KernargMemory(const Agent* agent, uint64_t size_bytes, bool on_device = false);

  std::byte* data() const noexcept {
    return static_cast<std::byte*>(host_ ? host_.get() : memory_.data());
  }
  uint64_t size_bytes() const noexcept { return size_bytes_; }
  std::span<std::byte> span() const noexcept { return {data(), size_bytes_}; }
  void leave_to_session() noexcept { memory_.leave_to_session(); }

 private:
  Allocation memory_;
  std::unique_ptr<void, decltype(&std::free)> host_{nullptr, &std::free};  // without ROCr
  uint64_t size_bytes_ = 0;
};

// Flushes the host data path by its register HDP_MEM_FLUSH_CNTL. The write-combining buffers drain
// before. The read returns after the store has reached the device and the flush is done (CLR,
// rocvirtual.cpp, reads the register, too). Atomic, because all threads and queues share it.
inline void flush_hdp(volatile uint32_t* hdp_flush) noexcept {
  aql::store_fence();
  __atomic_store_n(hdp_flush, 1u, __ATOMIC_RELAXED);
  (void)__atomic_load_n(hdp_flush, __ATOMIC_RELAXED);
}

// Makes the calling thread's earlier stores to device memory visible to the GPU. Call it before the
// first header of the packets that depend on them: a running queue may start a packet as soon as
// its header is visible.
class DeviceWrites {
 public:
  static constexpr size_t kLineBytes = 64;

  DeviceWrites() = default;  // for host memory: flush() does nothing
  // `hdp_flush`: HDP_MEM_FLUSH_CNTL, or null. `line`: a line of device memory for read-backs, which
  // holds nothing else. `coherent_link`: KernargPlace::coherent_link.
  DeviceWrites(uint32_t* hdp_flush, std::byte* line, bool coherent_link = false) noexcept
      : hdp_flush_(hdp_flush),
        line_(reinterpret_cast<uint8_t*>(line)),
        coherent_link_(coherent_link) {}

  bool needed() const noexcept { return line_ != nullptr; }
  void flush() noexcept {
    if (!needed()) [[likely]]
      return;
    if (coherent_link_) {
      aql::store_fence();  // for non-temporal stores
    } else if (hdp_flush_ != nullptr) {
      flush_hdp(hdp_flush_);
      count(&CounterBlock::hdp_flushes);
    } else {
      aql::store_fence();
      // The last store before the read is to the line that is read. The fence orders the read
      // after it, which sfence would not, and on PCIe a read does not pass earlier writes to its
      // device.
      *line_ = static_cast<uint8_t>(last_ ^= 1);
      aql::store_load_fence();
      (void)*line_;
      count(&CounterBlock::kernarg_read_backs);
    }
  }

 private:
  volatile uint32_t* hdp_flush_ = nullptr;
  volatile uint8_t* line_ = nullptr;
  uint8_t last_ = 0;
  bool coherent_link_ = false;
};

}  // namespace uptempo::detail
