// Helpers without work that sleep until a worker wakes them.
//
// Thread safety: any thread.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <cstdint>

namespace uptempo::vgpu {

class Sleepers {
 public:
  Sleepers() noexcept { sem_init(&wakes_, 0, 0); }
  ~Sleepers() { sem_destroy(&wakes_); }
  Sleepers(const Sleepers&) = delete;
  Sleepers& operator=(const Sleepers&) = delete;

  // Helpers that sleep and that nobody has woken yet.
  uint32_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

  // Sleeps until somebody calls wake(), unless `has_work()` is true. A thread that makes it true
  // and calls wake() afterwards never leaves this one asleep.
  template <typename HasWork>
  void sleep(HasWork has_work) noexcept {
    // seq_cst: either has_work() sees the work, if it loads and the other thread stored it so, or
    // wake() sees this helper.
    count_.fetch_add(1, std::memory_order_seq_cst);
    if (has_work() && take(1) == 1) return;
    // Also if another thread has taken the count back to wake this helper.
    while (sem_wait(&wakes_) != 0) {  // a signal handler ran
    }
  }

  // Wakes at most `most` helpers. Call it after the store that gives them work.
  void wake(uint32_t most) noexcept {
    for (uint32_t woken = take(most); woken > 0; --woken) sem_post(&wakes_);
  }

 private:
  // Lowers the count by at most `most` and returns by how much.
  uint32_t take(uint32_t most) noexcept {
    uint32_t count = count_.load(std::memory_order_seq_cst);
    uint32_t taken = 0;
    do {
      taken = count < most ? count : most;
      if (taken == 0) return 0;
    } while (!count_.compare_exchange_weak(count, count - taken, std::memory_order_relaxed));
    return taken;
  }

  alignas(64) std::atomic<uint32_t> count_{0};  // every worker reads it after each workgroup
  // std::counting_semaphore of libstdc++ 12 may sleep for ever with a count of 1 (GCC bug 104928):
  // acquire() reads the count, sees it taken, and then waits until it is no longer what it read.
  alignas(64) sem_t wakes_;
};

}  // namespace uptempo::vgpu
