// Gauge: one level of pressure.hpp, recorded at every change of use. Private to engine.
//
// Thread safety: every function may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include <uptempo/dispatch/pools/pressure.hpp>

namespace uptempo::detail {

class Gauge {
 public:
  // Call once, before any other function.
  void start(uint32_t capacity) noexcept {
    capacity_ = capacity;
    high_mark_ = capacity - capacity / 4;
    low_mark_ = capacity / 2;
  }

  // Relaxed: readers need only a recent number.
  void set(uint32_t in_use) noexcept {
    in_use_.store(in_use, std::memory_order_relaxed);
    uint32_t peak = peak_.load(std::memory_order_relaxed);
    while (in_use > peak && !peak_.compare_exchange_weak(peak, in_use, std::memory_order_relaxed)) {
    }
    if (in_use >= high_mark_) {
      high_.store(capacity_ != 0, std::memory_order_relaxed);
    } else if (in_use <= low_mark_) {
      high_.store(false, std::memory_order_relaxed);
    }
  }
  uint32_t in_use() const noexcept { return in_use_.load(std::memory_order_relaxed); }
  Level level() const noexcept {
    return {.capacity = capacity_,
            .in_use = in_use(),
            .peak = peak_.load(std::memory_order_relaxed),
            .high = high_.load(std::memory_order_relaxed)};
  }

 private:
  uint32_t capacity_ = 0;
  uint32_t high_mark_ = 0;
  uint32_t low_mark_ = 0;
  std::atomic<uint32_t> in_use_{0}, peak_{0};
  std::atomic<bool> high_{false};
};

}  // namespace uptempo::detail
