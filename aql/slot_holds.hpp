// SlotHolds: ring slots that stay in use after the read index has passed them.
//
// A kernel may read its own packet through the dispatch pointer while it runs (LLVM AMDGPU User
// Guide, "Initial Kernel Execution State": the dispatch pointer is the address of the packet in the
// ring). The packet processor may advance the read index as soon as it has launched the packet: the
// specification does not make it wait for completion (HSA Platform System Architecture 1.2, 2.8 and
// 2.9; one of its authors in github.com/ROCm/ROCR-Runtime/issues/105; see also
// github.com/ROCm/rocm-systems/pull/4341). The read index alone therefore does not free the slot of
// such a kernel. Its completion does.
//
// A hold covers the slots of consecutive packets. A producer adds it before it publishes them. All
// producers of the ring ask free_below() instead of using the read index as it is.
//
// Thread safety: every function may be called from any thread; a slot's hold is added by the
// producer that has claimed the slot.
// Cost: construction allocates 32 bytes per slot. After that: no lock, allocation or system call.
// free_below() looks at each slot once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace uptempo::aql {

// The event that ends a hold.
struct HoldEnd {
  void* owner = nullptr;
  uint64_t value = 0;
};

class SlotHolds {
 public:
  // Returns true when all packets that `end` stands for are complete; then it must stay true. Any
  // thread calls it.
  using IsComplete = bool (*)(const HoldEnd& end) noexcept;

  // `read_index`: the ring's current one. No earlier packet is held.
  SlotHolds(uint32_t ring_size, uint64_t read_index, IsComplete is_complete);
  SlotHolds(const SlotHolds&) = delete;
  SlotHolds& operator=(const SlotHolds&) = delete;

  // Holds the slots of packets [first, last]. The caller has claimed them and publishes them later.
  void add(uint64_t first, uint64_t last, const HoldEnd& end) noexcept;

  // Returns the index of the first packet whose slot is in use. `read_index`: a value that the
  // caller has loaded with acquire order.
  uint64_t free_below(uint64_t read_index) noexcept;

 private:
  // A hold, at the place of its first slot. Atomics, because a thread with an old view may read a
  // place that another producer fills again; free_below() detects that.
  struct Hold {
    std::atomic<uint64_t> first;  // index of the packet; of another lap: no hold begins here
    std::atomic<uint64_t> last;
    std::atomic<void*> owner;
    std::atomic<uint64_t> value;
  };

  Hold& hold(uint64_t index) noexcept { return holds_[index & mask_]; }

  const uint64_t mask_;
  const IsComplete is_complete_;
  std::unique_ptr<Hold[]> holds_;
  std::atomic<uint64_t> free_below_;  // only grows
};

}  // namespace uptempo::aql
