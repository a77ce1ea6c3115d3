// WaitLeaders: for each publication, at most one thread that sleeps on its signal, and a condition
// variable for the other threads that wait for it. Private to Timeline.
//
// ROCr 5.2.3 lets only the first blocked waiter of a signal sleep; others spin
// (interrupt_signal.cpp, WaitRelaxed). So the first blocked waiter of a publication leads: it
// sleeps on the signal (signal_sleep.hpp), and wakes the others when it leaves. One of these leads
// next if the publication is still unfinished.
//
// Thread safety: the timeline's mutex protects every function. sleep() releases it meanwhile.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace uptempo::detail {

class WaitLeaders {
 public:
  explicit WaitLeaders(size_t places) : seats_(places) {}

  bool led(size_t place) const noexcept { return seats_[place].led; }
  void lead(size_t place) noexcept { seats_[place].led = true; }
  // Ends the leadership and wakes all sleepers. Returns true if rely() was called meanwhile.
  [[nodiscard]] bool leave(size_t place) noexcept {
    seats_[place].led = false;
    wake_all();
    return std::exchange(seats_[place].relied, false);
  }
  // The completion thread relies on the leader's wake-up.
  void rely(size_t place) noexcept { seats_[place].relied = true; }

  // Returns when a leader leaves, at wake_all(), or after `at_most`.
  void sleep(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds at_most) {
    changed_.wait_for(lock, at_most);
  }
  void wake_all() noexcept { changed_.notify_all(); }

 private:
  struct Seat {
    bool led = false;     // a thread sleeps on the signal
    bool relied = false;  // the completion thread relies on that thread's wake-up
  };
  std::vector<Seat> seats_;
  std::condition_variable changed_;
};

}  // namespace uptempo::detail
