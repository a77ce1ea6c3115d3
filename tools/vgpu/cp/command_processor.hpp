// The command processor: executes packets of queues on memory and raises events.
//
// One thread takes packets from all compute (AQL) and SDMA queues. Each queue is a resumable state
// machine, so a queue that waits (for a dependency, scratch or a barrier) does not block another.
// The device's workers execute the workgroups of launched dispatches; this thread is one of them.
// Each GPU of a process has a command processor.
//
// Thread safety: any thread of the program may call every member (they are ioctls), including
// destroy_queue(), unless stated otherwise. doorbell_rung() is async-signal-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "cp/report/snapshot.hpp"
#include "device/device.hpp"

namespace uptempo::vgpu {

// Compute queues of the hardware: num_cp_queues of KFD's topology. More queues share them in turn.
inline constexpr uint32_t kHardwareQueues = 24;

using QueueId = uint32_t;
// Ids start at 1 and are unique in the process. Ordinals, used in traces and findings, start at 0.
constexpr uint32_t ordinal_of(QueueId id) noexcept { return id - 1; }

struct ComputeQueueConfig {
  GpuAddress ring = 0;         // 64-byte AQL packets
  uint64_t ring_bytes = 0;     // power of two
  GpuAddress read_index = 0;   // &amd_queue_t::read_dispatch_id; amd_queue_t begins 0x80 below
  GpuAddress write_index = 0;  // &amd_queue_t::write_dispatch_id
  // device's alias of the slot; the index of the last packet, initialised to -1.
  uint64_t* doorbell = nullptr;
  uint32_t percentage = 100;         // 0 suspends the queue
  uint32_t priority = 7;             // 0..15, KFD's scale
  GpuAddress context_save_area = 0;  // 0: none. Only its header is used (queue_exception.hpp).
};

struct SdmaQueueConfig {
  GpuAddress ring = 0;
  uint64_t ring_bytes = 0;
  GpuAddress read_pointer = 0;  // bytes, monotonic
  GpuAddress write_pointer = 0;
  uint64_t* doorbell = nullptr;  // byte write pointer, initialised to 0
  uint32_t engine = 0;           // its SDMA engine; XGMI engines last
};

class CommandProcessor {
 public:
  // Throws std::system_error if its thread cannot be started. The device runs without workers that
  // cannot be started.
  explicit CommandProcessor(Device& device);
  ~CommandProcessor();  // stops the threads and drops remaining queues
  CommandProcessor(const CommandProcessor&) = delete;
  CommandProcessor& operator=(const CommandProcessor&) = delete;

  QueueId create_compute_queue(const ComputeQueueConfig& config);
  QueueId create_sdma_queue(const SdmaQueueConfig& config);

  // Abandons the queue's running dispatches. Returns when no device thread accesses the queue's
  // memory. Returns false if the queue does not exist.
  bool destroy_queue(QueueId queue);

  // Stops all queues for good, those of later creation too, and abandons their running dispatches.
  // Nothing completes afterwards. Returns when no device thread executes for a queue.
  void stop_queues();

  // UPDATE_QUEUE: ring size 0 or percentage 0 suspends.
  bool update_queue(QueueId queue, GpuAddress ring, uint64_t ring_bytes, uint32_t percentage,
                    uint32_t priority);
  // SET_CU_MASK: restricts the compute units of workgroups that start from now on
  // (ComputeUnitSet::of_mask()). Workgroups that run keep their units. With no unit in the mask the
  // queue starts no workgroup until another mask is set. SDMA queues ignore masks.
  bool set_cu_mask(QueueId queue, std::span<const uint32_t> mask);

  enum class SnapshotDepth : uint8_t { queues, waves };
  // Returns the state of the queues and, with `waves`, of what runs for them. The program and the
  // device continue; the workers rest for the moment in which waves are copied. Waits for at most
  // `limit` (and a tenth of it for the workers); DeviceSnapshot::answered is false then.
  DeviceSnapshot snapshot(SnapshotDepth depth, std::chrono::nanoseconds limit);

  // Call it when the program has mapped a doorbell page at `program_address` (the device's alias:
  // `alias`). While all queues are idle, the command processor write-protects that page and sleeps.
  // The first store to it faults, takes effect and wakes the processor.
  void attach_doorbell_page(std::byte* program_address, std::byte* alias, size_t size_bytes);
  // Call it before the program unmaps or frees the page.
  void detach_doorbell_page(std::byte* program_address);

  // Call it after a change outside the doorbells that a queue may wait for.
  void doorbell_rung() noexcept;

  // Calls AddressSpace::unmap() after writing back and dropping everything that the device's caches
  // hold of the mapping.
  void unmap(GpuAddress begin);

  // Call it after unmapping memory, since code may have changed. Drops decoded instructions before
  // the next wave starts.
  void invalidate_code() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::vgpu
