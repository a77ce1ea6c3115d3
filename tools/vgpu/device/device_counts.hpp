// Counts of the device's operations, read through query.h.
//
// Thread safety: the command processor's thread counts, any thread reads. The counts of a packet
// are updated before its completion signal is sent.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "device/caches/caching.hpp"

namespace uptempo::vgpu {

class DeviceCounts {
 public:
  // One store per packet, whatever its header; readers compute the sums.
  void packet(bool is_dispatch, uint16_t header) noexcept {
    add(packets_[is_dispatch ? 1 : 0][header >> kFirstBit & (kSettings - 1)]);
  }
  void doorbell() noexcept { add(doorbells_); }
  void signal_update() noexcept { add(signal_updates_); }
  void interrupt() noexcept { add(interrupts_); }
  // A copy packet of an SDMA engine. One that copies more than a packet can is several.
  void copy(uint32_t engine, uint64_t bytes) noexcept {
    if (engine >= kMostEngines) return;
    add(copies_[engine]);
    add(copied_bytes_[engine], bytes);
  }

  uint64_t dispatches() const noexcept {
    return packets_where([](bool dispatch, unsigned) { return dispatch; });
  }
  uint64_t others() const noexcept {
    return packets_where([](bool dispatch, unsigned) { return !dispatch; });
  }
  uint64_t barrier_bits() const noexcept {
    return packets_where([](bool, unsigned setting) { return (setting & 1) != 0; });
  }
  uint64_t acquires(FenceScope scope) const noexcept {
    return packets_where([scope](bool, unsigned setting) {
      return (setting >> 1 & 3) == static_cast<unsigned>(scope);
    });
  }
  uint64_t releases(FenceScope scope) const noexcept {
    return packets_where([scope](bool, unsigned setting) {
      return (setting >> 3 & 3) == static_cast<unsigned>(scope);
    });
  }
  uint64_t doorbells() const noexcept { return get(doorbells_); }
  uint64_t signal_updates() const noexcept { return get(signal_updates_); }
  uint64_t interrupts() const noexcept { return get(interrupts_); }
  static constexpr uint32_t kMostEngines = 16;  // of hsa_amd_sdma_engine_id_t
  // Requires engine < kMostEngines.
  uint64_t copies(uint32_t engine) const noexcept { return get(copies_[engine]); }
  uint64_t copied_bytes(uint32_t engine) const noexcept { return get(copied_bytes_[engine]); }

 private:
  using Count = std::atomic<uint64_t>;
  // Barrier bit, acquire and release: bits 8 to 12 of a header (hsa.h, hsa_packet_header_t).
  static constexpr unsigned kFirstBit = 8, kSettings = 32;

  // Only one thread counts, so no locked instruction is needed. relaxed: the completion signal
  // orders the counts for a thread that has waited for it.
  static void add(Count& count, uint64_t n = 1) noexcept {
    count.store(count.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  static uint64_t get(const Count& count) noexcept { return count.load(std::memory_order_relaxed); }

  template <class Predicate>
  uint64_t packets_where(Predicate predicate) const noexcept {
    uint64_t sum = 0;
    for (unsigned dispatch = 0; dispatch < 2; ++dispatch)
      for (unsigned setting = 0; setting < kSettings; ++setting)
        if (predicate(dispatch != 0, setting)) sum += get(packets_[dispatch][setting]);
    return sum;
  }

  std::array<std::array<Count, kSettings>, 2> packets_{};
  std::array<Count, kMostEngines> copies_{}, copied_bytes_{};
  Count doorbells_{0}, signal_updates_{0}, interrupts_{0};
};

}  // namespace uptempo::vgpu
