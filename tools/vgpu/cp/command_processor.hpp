// The command processor: packet queues in, memory and events out.
//
// One thread of its own takes packets from every compute (AQL) and SDMA queue, each a resumable state machine, so that a queue that waits
// (for a dependency, for scratch, for a barrier) never holds up another. Workgroups of launched dispatches run on the device's
// workers, of which this thread is one.
//
// Thread safety: every member may be called from any thread of the program (they are ioctls), destroy_queue() included, except
// where said. doorbell_rung() is async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "device/device.hpp"

namespace uptempo::vgpu {

using QueueId = uint32_t;
// Ids are KFD's queue ids: ROCT keeps 0 for "no queue", so they start at 1. Ordinals, which traces and findings show, start at 0.
constexpr uint32_t ordinal_of(QueueId id) noexcept { return id - 1; }

struct ComputeQueueConfig {
  GpuAddress ring = 0;           // 64-byte AQL packets
  uint64_t ring_bytes = 0;  // power of two
  GpuAddress read_index = 0;     // &amd_queue_t::read_dispatch_id; amd_queue_t itself lies 0x80 below
  GpuAddress write_index = 0;    // &amd_queue_t::write_dispatch_id
  uint64_t* doorbell =
      nullptr;  // device's alias of the slot; holds the index of the last packet, initialised to -1
  uint32_t percentage = 100;  // 0 suspends the queue
  uint32_t priority = 7;      // 0..15, KFD's scale
};

struct SdmaQueueConfig {
  GpuAddress ring = 0;
  uint64_t ring_bytes = 0;
  GpuAddress read_pointer = 0;  // bytes, monotonic
  GpuAddress write_pointer = 0;
  uint64_t* doorbell = nullptr;  // byte write pointer, initialised to 0
};

class CommandProcessor {
 public:
  // Throws std::system_error when its thread cannot be started. Workers that cannot be started are done without.
  explicit CommandProcessor(Device& device);
  ~CommandProcessor();  // stops the threads; queues that still exist are dropped
  CommandProcessor(const CommandProcessor&) = delete;
  CommandProcessor& operator=(const CommandProcessor&) = delete;

  QueueId create_compute_queue(const ComputeQueueConfig& config);
  QueueId create_sdma_queue(const SdmaQueueConfig& config);

  // Returns when no device thread touches the queue's memory any more; its running dispatches are abandoned. False: no such queue.
  bool destroy_queue(QueueId queue);

  // UPDATE_QUEUE: ring of size 0 or percentage 0 suspends.
  bool update_queue(QueueId queue, GpuAddress ring, uint64_t ring_bytes, uint32_t percentage,
                    uint32_t priority);
  bool set_cu_mask(QueueId queue, std::span<const uint32_t> mask);

  // The program has mapped the doorbell page at `program_address` (device's alias: `alias`). While all queues are idle the
  // command processor write-protects that page and sleeps; the first store to it faults, is let through and wakes it.
  void attach_doorbell_page(std::byte* program_address, std::byte* alias, size_t size_bytes);
  // The program is about to unmap or free it. Must be called before munmap.
  void detach_doorbell_page(std::byte* program_address);

  // Something outside the doorbells may have changed what a queue waits for.
  void doorbell_rung() noexcept;

  // AddressSpace::unmap(), after all that the device's caches hold of the mapping has been written back and dropped.
  void unmap(GpuAddress begin);

  // Code may have changed: memory was unmapped. Decoded instructions are dropped before the next wave starts.
  void invalidate_code() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::vgpu
