// When the watchdog reports a GPU: once, when its queues have had work for the given time and
// nothing has completed; again after something has completed or the queues have become idle.
//
// Thread safety: none. The caller passes times, so tests need no clock.
#pragma once

#include <chrono>
#include <cstdint>

namespace uptempo::vgpu::kfd {

class HangWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit HangWatch(std::chrono::nanoseconds limit) noexcept : limit_(limit) {}

  // One look. `completed`: how much has completed so far. `has_work()` is called if that has not
  // changed since the last look. Returns whether to report the GPU.
  template <typename HasWork>
  bool look(Time now, uint64_t completed, HasWork&& has_work) {
    if (is_first_ || completed != completed_) {
      is_first_ = false;
      completed_ = completed;
      begin(now);
      return false;
    }
    if (!has_work()) {
      begin(now);
      return false;
    }
    if (reported_ || now - since_ < limit_) return false;
    return reported_ = true;
  }

 private:
  void begin(Time now) noexcept {
    since_ = now;
    reported_ = false;
  }

  std::chrono::nanoseconds limit_;
  bool is_first_ = true;
  bool reported_ = false;
  uint64_t completed_ = 0;
  Time since_{};  // the last change, or the last look when idle
};

}  // namespace uptempo::vgpu::kfd
