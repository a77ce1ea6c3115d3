// SignalReaders: counts the threads that may read a timeline's signals, so that the owner can
// destroy the signals after the last of these threads has left. Private to Timeline.
//
// Thread safety: every function may be called from any thread. close(), wait_for_last() and open()
// belong to the owner, in this order.
#pragma once

#include <atomic>
#include <cstdint>

#include <uptempo/aql/pause.hpp>

namespace uptempo::detail {

class SignalReaders {
 public:
  // Returns false after close(): the signals may already be destroyed.
  bool enter() noexcept {
    // First check without counting, so that threads that poll in a loop cannot delay
    // wait_for_last().
    if (closed()) return false;
    // Sequentially consistent, like the store in close() and the load in wait_for_last(): one of
    // the two sees the other.
    inside_.fetch_add(1, std::memory_order_seq_cst);
    if (!closed_.load(std::memory_order_seq_cst)) return true;
    leave();
    return false;
  }
  // Release: the owner sees that this thread's last read of a signal has happened.
  void leave() noexcept { inside_.fetch_sub(1, std::memory_order_release); }

  bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  // After this, no thread enters.
  void close() noexcept { closed_.store(true, std::memory_order_seq_cst); }
  // Returns when no thread is inside. Requires close(). Without a deadline, because what the
  // threads read is destroyed next: each leaves when it wakes, after kLongestSleep at the latest.
  void wait_for_last() const noexcept {
    for (aql::Pause pause(Deadline::never()); inside_.load(std::memory_order_seq_cst) != 0;)
      pause.wait();
  }
  void open() noexcept { closed_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> closed_{false};
  std::atomic<uint32_t> inside_{0};
};

// One thread's reads. Converts to false if the thread was not admitted.
class SignalRead {
 public:
  explicit SignalRead(SignalReaders& readers) noexcept
      : readers_(readers), inside_(readers.enter()) {}
  ~SignalRead() {
    if (inside_) readers_.leave();
  }
  SignalRead(const SignalRead&) = delete;
  SignalRead& operator=(const SignalRead&) = delete;
  explicit operator bool() const noexcept { return inside_; }
  // The thread stays inside until it calls SignalReaders::leave().
  void stay() noexcept { inside_ = false; }

 private:
  SignalReaders& readers_;
  bool inside_;
};

}  // namespace uptempo::detail
