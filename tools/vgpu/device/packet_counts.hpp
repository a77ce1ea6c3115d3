// How many packets have completed: counts.h.
//
// Thread safety: the command processor's thread counts, any thread reads. A packet is counted before its completion signal is sent.
#pragma once

#include <atomic>
#include <cstdint>

namespace uptempo::vgpu {

class PacketCounts {
 public:
  void dispatch() noexcept { add(dispatches_); }
  void other() noexcept { add(others_); }

  std::uint64_t dispatches() const noexcept { return dispatches_.load(std::memory_order_relaxed); }
  std::uint64_t others() const noexcept { return others_.load(std::memory_order_relaxed); }

 private:
  // One thread counts, so no locked instruction is needed. relaxed: the completion signal orders it for who has waited.
  static void add(std::atomic<std::uint64_t>& count) noexcept {
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  std::atomic<std::uint64_t> dispatches_{0}, others_{0};
};

}  // namespace uptempo::vgpu
