// Direct access to amd_queue_t and amd_signal_t (amd_hsa_queue.h, amd_hsa_signal.h). No other file
// reads these structures.
//
// A ROCr hsa_queue_t is the first member of an amd_queue_t; an hsa_signal_t is the address of an
// amd_signal_t. Direct access saves a call per load of an index or signal. Two checks guard it:
// * A queue's layout is accepted only if the read-index offset that the queue records equals this
//   header's offset.
// * A doorbell is written directly only if its signal is of kind AMD_SIGNAL_KIND_DOORBELL.
//   Profilers replace it with a USER signal, and legacy devices expect another unit; both take the
//   HSA call.
// If a check fails, the pointers are null and callers use the HSA functions. The checks do not see
// every tool: rocprofiler-sdk of 2026 keeps queue and doorbell and replaces HSA functions. Then
// only the caller can know, and asks for RingAccess::hsa_calls (engine/runtime/ring_access.hpp).
//
// Thread safety: every function may be called from any thread.
// Lifetime: a view is valid as long as its queue.
#pragma once

#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa.h>

#include <atomic>
#include <cstdint>

namespace uptempo::aql {

// How the indices and the doorbell of a queue are reached.
enum class RingAccess : uint8_t {
  direct,     // in the queue's memory where the checks above allow it, otherwise by HSA functions
  hsa_calls,  // by the HSA functions alone, which tools interpose
};

// Direct pointers into a queue; null where direct access is not allowed. All accesses use
// std::atomic_ref. The member functions use the pointer if it is set, otherwise the HSA call.
struct QueueView {
  hsa_queue_t* queue = nullptr;
  // Advanced by the packet processor, possibly past a packet as soon as that packet is launched.
  uint64_t* read_index = nullptr;
  uint64_t* write_index = nullptr;  // the visible write index
  uint64_t* doorbell = nullptr;     // hardware doorbell; takes the index of the last packet

  uint64_t load_read_index() const noexcept;
  uint64_t load_write_index() const noexcept;
  void store_write_index(uint64_t index) const noexcept;
  void ring_doorbell(uint64_t last) const noexcept;
};

QueueView view(hsa_queue_t* queue, RingAccess access = RingAccess::direct) noexcept;

// Throws std::invalid_argument if the queue is null, the ring size is not a power of two, or the
// ring address is null or not 64-byte aligned.
void require_ring(const hsa_queue_t* queue);

// True if the ring is in a GPU's memory, where the host's stores are write-combined and its loads
// are slow (ROCr from 6.4 on, with HSA_ALLOCATE_QUEUE_DEV_MEM=1). Asks hsa_amd_pointer_info for the
// owner of the ring's address, because no field of the queue tells. False if HSA does not know the
// address, as in an intercepting queue's own memory.
bool is_ring_in_device_memory(const hsa_queue_t* queue) noexcept;

// Upper halves of the flat addresses at which kernels of this queue see scratch and LDS. Kernels
// for devices before gfx9 receive them as hidden arguments. Zero where direct access is not
// allowed.
struct QueueApertures {
  uint32_t private_segment_high = 0;
  uint32_t group_segment_high = 0;
};
QueueApertures apertures(hsa_queue_t* queue) noexcept;

// Waves that the agent of this queue runs at once, for which ROCr reserves private memory. Zero
// where direct access is not allowed.
uint64_t wave_slots(const hsa_queue_t* queue) noexcept;

// Returns true if completion of the signal can interrupt a sleeping waiter. When the driver's
// events have run out, ROCr 5.2.3 silently returns a signal without an event; a blocked wait then
// spins.
bool has_interrupt(hsa_signal_t signal) noexcept;

// Start and end of the packet that last completed this signal, in ticks of the agent's clock; zero
// if profiling was off. Valid from the acquire load that shows completion until the signal is
// reused.
struct SignalTimes {
  uint64_t start_ticks = 0;
  uint64_t end_ticks = 0;
};
SignalTimes signal_times(hsa_signal_t signal) noexcept;

// Loads the value of a USER signal without an HSA call. Other kinds use hsa_signal_load_scacquire.
hsa_signal_value_t load_acquire(hsa_signal_t signal) noexcept;

// Re-arms a pooled signal: sets the value of a USER signal that no thread waits on and zeroes its
// times. Wakes no waiter (like hsa_signal_silent_store_relaxed). Publication of the packets that
// use the signal orders this store before them.
void rearm(hsa_signal_t signal, hsa_signal_value_t value) noexcept;

namespace detail {
inline amd_signal_t* abi(hsa_signal_t signal) noexcept {
  return reinterpret_cast<amd_signal_t*>(signal.handle);
}
inline std::atomic_ref<int64_t> value_of(hsa_signal_t signal) noexcept {
  return std::atomic_ref(const_cast<int64_t&>(abi(signal)->value));
}

// HSA 1.2, hsa_signal_t: USER signals hold a value; DOORBELL signals do not.
enum class SignalKind : int64_t { invalid = 0, user = 1, doorbell = -1, legacy_doorbell = -2 };

inline SignalKind signal_kind(hsa_signal_t signal) noexcept {
  return signal.handle == 0 ? SignalKind::invalid : static_cast<SignalKind>(abi(signal)->kind);
}
}  // namespace detail

inline hsa_signal_value_t load_acquire(hsa_signal_t signal) noexcept {
  if (detail::signal_kind(signal) != detail::SignalKind::user)
    return hsa_signal_load_scacquire(signal);
  return detail::value_of(signal).load(std::memory_order_acquire);
}

inline void rearm(hsa_signal_t signal, hsa_signal_value_t value) noexcept {
  if (detail::signal_kind(signal) != detail::SignalKind::user)
    return hsa_signal_silent_store_relaxed(signal, value);
  detail::abi(signal)->start_ts = 0;
  detail::abi(signal)->end_ts = 0;
  detail::value_of(signal).store(value, std::memory_order_relaxed);
}

inline uint64_t QueueView::load_read_index() const noexcept {
  // Acquire: the processor's last reads of a slot happen before the slot is filled again.
  if (read_index != nullptr) return std::atomic_ref(*read_index).load(std::memory_order_acquire);
  return hsa_queue_load_read_index_scacquire(queue);
}

inline uint64_t QueueView::load_write_index() const noexcept {
  // Acquire: makes visible what other threads published below the index, before this thread fills
  // the same slots one lap later. The read index already proves that the slots are free, but the
  // processor between those threads and this one is not a thread of the C++ memory model.
  if (write_index != nullptr) return std::atomic_ref(*write_index).load(std::memory_order_acquire);
  return hsa_queue_load_write_index_scacquire(queue);
}

inline void QueueView::store_write_index(uint64_t index) const noexcept {
  // Release: a reader of the index also sees the packets below it.
  if (write_index != nullptr) {
    std::atomic_ref(*write_index).store(index, std::memory_order_release);
  } else {
    hsa_queue_store_write_index_screlease(queue, index);
  }
}

inline void QueueView::ring_doorbell(uint64_t last) const noexcept {
  // Release: the headers and the write index are visible before the doorbell.
  if (doorbell != nullptr) {
    std::atomic_ref(*doorbell).store(last, std::memory_order_release);
  } else {
    hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(last));
  }
}

}  // namespace uptempo::aql
