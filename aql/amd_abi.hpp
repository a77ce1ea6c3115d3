// The only place that looks inside amd_queue_t and amd_signal_t (amd_hsa_queue.h, amd_hsa_signal.h).
//
// An hsa_queue_t of ROCr is the first member of an amd_queue_t, an hsa_signal_t the address of an amd_signal_t. Reading them directly
// spares a call per index or signal load. Nothing is believed without a check: a queue's layout is accepted only when the offset that
// the queue itself records for its read index is the one of this header, and a doorbell is written directly only when its signal is of
// kind AMD_SIGNAL_KIND_DOORBELL. Profilers put a USER signal in the doorbell's place, legacy devices want another unit: both take the
// HSA call. Where a check fails, pointers are null and callers use the HSA functions.
//
// Thread safety: all functions may be called from any thread. Lifetimes: a view lives as long as the queue it was taken from.
#pragma once

#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa.h>

#include <atomic>
#include <cstdint>

namespace uptempo::aql {

// Direct pointers into a queue; null where direct access is not allowed. All are used through std::atomic_ref. The functions take the pointer
// where there is one, else the HSA call.
struct QueueView {
  hsa_queue_t* queue = nullptr;
  uint64_t* read_index =
      nullptr;  // advanced by the packet processor; may pass a packet as soon as it is launched
  uint64_t* write_index = nullptr;  // the visible write index
  uint64_t* doorbell = nullptr;     // hardware doorbell: takes the index of the last packet

  uint64_t load_read_index() const noexcept;
  uint64_t load_write_index() const noexcept;
  void store_write_index(uint64_t index) const noexcept;
  void ring_doorbell(uint64_t last) const noexcept;
};

QueueView view(hsa_queue_t* queue) noexcept;

// Throws std::invalid_argument for a queue that nobody can write to: null, a ring that is no power of two, null or not 64-byte aligned.
void require_ring(const hsa_queue_t* queue);

// Upper halves of the flat addresses at which scratch and LDS appear to kernels of this queue; kernels for devices before gfx9 receive them
// as hidden arguments. Zero where direct access is not allowed.
struct QueueApertures {
  uint32_t private_segment_high = 0;
  uint32_t group_segment_high = 0;
};
QueueApertures apertures(hsa_queue_t* queue) noexcept;

// HSA 1.2, hsa_signal_t: USER signals hold a value, DOORBELL ones hold none.
enum class SignalKind : int64_t { invalid = 0, user = 1, doorbell = -1, legacy_doorbell = -2 };

SignalKind signal_kind(hsa_signal_t signal) noexcept;

// True if completion of the signal can interrupt a sleeping waiter. ROCr 5.2.3 returns a signal without event, on which a blocked
// wait spins, without a word when the driver's events have run out.
bool has_interrupt(hsa_signal_t signal) noexcept;

// Start and end of the packet that last completed this signal, in ticks of its agent's clock; zero where profiling was off. Valid
// after an acquire load of the signal's value has shown completion, until the signal is used again.
struct SignalTimes {
  uint64_t start_ticks = 0;
  uint64_t end_ticks = 0;
};
SignalTimes signal_times(hsa_signal_t signal) noexcept;

// The value of a USER signal, without a call into HSA; any other kind takes hsa_signal_load_*.
hsa_signal_value_t load_acquire(hsa_signal_t signal) noexcept;
hsa_signal_value_t load_relaxed(hsa_signal_t signal) noexcept;

// Sets a USER signal that nobody waits on, and zeroes its times: re-arming a pooled signal. No waiter is woken (as
// hsa_signal_silent_store_relaxed). The store is ordered before the packets that use the signal by their publication.
void rearm(hsa_signal_t signal, hsa_signal_value_t value) noexcept;

namespace detail {
inline amd_signal_t* abi(hsa_signal_t signal) noexcept {
  return reinterpret_cast<amd_signal_t*>(signal.handle);
}
inline std::atomic_ref<int64_t> value_of(hsa_signal_t signal) noexcept {
  return std::atomic_ref(const_cast<int64_t&>(abi(signal)->value));
}
}  // namespace detail

inline SignalKind signal_kind(hsa_signal_t signal) noexcept {
  return signal.handle == 0 ? SignalKind::invalid : static_cast<SignalKind>(detail::abi(signal)->kind);
}

inline hsa_signal_value_t load_acquire(hsa_signal_t signal) noexcept {
  if (signal_kind(signal) != SignalKind::user) return hsa_signal_load_scacquire(signal);
  return detail::value_of(signal).load(std::memory_order_acquire);
}

inline void rearm(hsa_signal_t signal, hsa_signal_value_t value) noexcept {
  if (signal_kind(signal) != SignalKind::user) return hsa_signal_silent_store_relaxed(signal, value);
  detail::abi(signal)->start_ts = 0;
  detail::abi(signal)->end_ts = 0;
  detail::value_of(signal).store(value, std::memory_order_relaxed);
}

inline uint64_t QueueView::load_read_index() const noexcept {
  // Acquire: the processor's last reads of a slot come before it is filled again.
  if (read_index != nullptr) return std::atomic_ref(*read_index).load(std::memory_order_acquire);
  return hsa_queue_load_read_index_scacquire(queue);
}

inline uint64_t QueueView::load_write_index() const noexcept {
  // Acquire: what other threads published below it, for those who fill the same slots a lap later. That the slots are free is proven by the read index; but the
  // processor, between those threads and this one, is no thread of the language.
  if (write_index != nullptr) return std::atomic_ref(*write_index).load(std::memory_order_acquire);
  return hsa_queue_load_write_index_scacquire(queue);
}

inline void QueueView::store_write_index(uint64_t index) const noexcept {
  // Release: whoever sees the index sees the packets below it.
  if (write_index != nullptr) {
    std::atomic_ref(*write_index).store(index, std::memory_order_release);
  } else {
    hsa_queue_store_write_index_screlease(queue, index);
  }
}

inline void QueueView::ring_doorbell(uint64_t last) const noexcept {
  // Release: headers and write index are visible before the doorbell is.
  if (doorbell != nullptr) {
    std::atomic_ref(*doorbell).store(last, std::memory_order_release);
  } else {
    hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(last));
  }
}

}  // namespace uptempo::aql
