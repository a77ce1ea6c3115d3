// Timeline: the order of a queue's publications, and the waits for them.
//
// Each publication gets the next value and one completion signal. Invariant 5 makes completion
// monotonic: the packet with the signal has its barrier bit set, so a fired signal means that this
// value and all lower ones are complete.
//
// Thread safety:
//   owner       begin, cancel, reclaim, has_room: the thread that owns the queue. It takes no lock
//               and never waits here; it synchronizes with waiters through atomics only.
//   any thread  is_done, wait, times, fail, failed, failure, last_begun, close. A thread counts as
//               a visitor while it may read a signal or the watched error source; close() waits for
//               the last visitor.
//   completion thread  begin_lookout, end_lookout (completion_thread.hpp).
//
// Waiting: ROCr 5.2.3 lets only the first blocked waiter of a signal sleep; others spin
// (interrupt_signal.cpp, WaitRelaxed). So the blocked waiters of a publication elect a leader that
// waits in ROCr, and the others sleep on a condition variable. A leader pins its publication: the
// owner does not reuse the signal until the leader has left. On a signal without an event ROCr
// would spin; there the leader polls with growing pauses of at most 4 ms.
//
// Errors: after fail(), every publication that has not completed ends with the failure, now and
// later. Waiters are woken by changing their signals. Completed publications stay complete. No
// signal is read again, so the caller may destroy its signal after a wait has thrown. An error in
// the watched source becomes a permanent failure once any thread reads it. So does a negative
// signal value, with which a failed copy reports its error; the next check of that publication
// finds it.
//
// Lifetime: timelines are never freed, because Completions are plain values that may outlive every
// other object. A Queue takes a timeline from a process-wide list and returns it. Values keep
// growing across uses, so all values of an earlier use read as complete. A timeline whose use lost
// publications is therefore never reused: it is the only record of the loss. All others are reused,
// failed or not.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "aql/amd_abi.hpp"
#include "aql/deadline.hpp"
#include "engine/completion/awaited.hpp"

namespace uptempo {

enum class WaitMode : uint8_t {
  active,   // spin: lowest latency, one core busy
  blocked,  // sleep in the driver: no core busy, 5-50 us added latency
  hybrid,   // spin for WaitPolicy::spin, then sleep
};

// After the spin window, ROCr 5.2.3 polls for another 200 us before it sleeps
// (interrupt_signal.cpp, WaitRelaxed). A longer window therefore ends no wait earlier and makes
// every long wait more expensive. A wait of 24 ms takes 1.7 % of a core with 20 us and 2.3 % with
// 100 us (tools/bench/wait; figures in its README).
struct WaitPolicy {
  WaitMode mode = WaitMode::hybrid;
  std::chrono::nanoseconds spin = std::chrono::microseconds(20);
};

// Why a queue failed.
struct Failure {
  hsa_status_t status = HSA_STATUS_SUCCESS;
  std::string text;
};
// Advice for the caller of a failed call.
std::string_view remedy(const Failure& failure) noexcept;

// Start and end of a packet on the device, in nanoseconds of the system's monotonic clock domain.
struct PacketTime {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  std::chrono::nanoseconds duration() const noexcept {
    return std::chrono::nanoseconds(end_ns - start_ns);
  }
};

enum class WaitResult : uint8_t { done, timed_out, failed };

class Timeline {
 public:
  // Takes a timeline for up to `capacity` unfinished publications from the process-wide list.
  static Timeline& acquire(uint32_t capacity);
  // Closes the timeline and returns it to the list.
  void release() noexcept;
  // Number of timelines, and how many are free.
  struct Census {
    size_t all = 0, free = 0;
  };
  static Census census();

  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // Owner functions. ReadTimes reads the times of a completed publication, under the timeline's
  // lock.
  using ReadTimes = std::function<void(std::vector<PacketTime>& times)>;

  bool has_room() const noexcept {
    return last_.load(std::memory_order_relaxed) - reclaimed_ < capacity_;
  }
  uint32_t capacity() const noexcept { return capacity_; }
  // For tables with one place per unfinished publication: `capacity` rounded up to a power of two,
  // and a publication's place.
  size_t places() const noexcept { return mask_ + 1; }
  size_t place(uint64_t value) const noexcept { return value & mask_; }
  uint32_t pending() const noexcept {
    return static_cast<uint32_t>(last_.load(std::memory_order_relaxed) - reclaimed_);
  }
  // Registers the next publication. Its signal holds 1. Requires has_room().
  uint64_t begin(hsa_signal_t signal) noexcept;
  // Reverts the last begin(). Requires that nothing was published and that no other thread received
  // the value.
  void cancel() noexcept;
  // Marks the last begun publication as timed. times() calls `read` until the publication is
  // reclaimed; reclaiming calls it once more.
  void time(ReadTimes read);
  // Calls on_reclaimed(value, signal) for up to `limit` finished publications, in order, whose
  // signals no waiter uses any more.
  template <class F>
  uint32_t reclaim(uint32_t limit, F&& on_reclaimed) noexcept;
  uint64_t oldest_pending() const noexcept { return reclaimed_ + 1; }
  // Requires a publication that has not been reclaimed.
  hsa_signal_t signal_of(uint64_t value) noexcept {
    return {entry(value).signal.load(std::memory_order_relaxed)};
  }

  // Functions for any thread.
  uint64_t last_begun() const noexcept { return last_.load(std::memory_order_acquire); }
  bool is_done(uint64_t value) noexcept;
  // True if an earlier check found it complete. Cost: one load.
  bool is_known(uint64_t value) const noexcept { return noted(value); }
  WaitResult wait(uint64_t value, WaitPolicy policy, Deadline deadline) noexcept;
  // Returns times of a complete, timed publication. Empty if it was not timed or more than
  // capacity() publications have followed.
  std::vector<PacketTime> times(uint64_t value);

  // Records the first failure; later calls change nothing. Returns true if publications are lost.
  bool fail(hsa_status_t status, std::string text) noexcept;
  bool failed() noexcept {
    if (error_.load(std::memory_order_acquire) != HSA_STATUS_SUCCESS) return true;
    return watched_.load(std::memory_order_acquire) != nullptr && watched_failed();
  }
  // Packets of `dependent` wait on the device for `value`. If `value` is lost, now or later, they
  // would wait forever, so `dependent` fails, too. Allocates for the first value of each dependent.
  void fail_too(Timeline& dependent, uint64_t value);
  // Requires failed().
  Failure failure() const;
  // Set by fail(). Also the error source of the queue's writer.
  const std::atomic<hsa_status_t>& error() const noexcept { return error_; }
  // Sets a second error source, which the owner of a borrowed queue writes and which must live
  // until close(). Sleeping waiters check it four times a second.
  void watch(const std::atomic<hsa_status_t>* source) noexcept {
    watched_.store(source, std::memory_order_release);
  }

  // For a thread that sleeps on the signals of several timelines. `leads`: sleep on `signal`, as
  // its only waiter, and call end_lookout() soon after the publication has finished. `led`: another
  // thread sleeps on it and wakes the completion thread when it leaves.
  enum class Lookout : uint8_t { finished, leads, led, without_event };
  Lookout begin_lookout(uint64_t value, hsa_signal_t& signal) noexcept;
  void end_lookout(uint64_t value) noexcept;
  // The completion thread's own.
  detail::AwaitedPublications& awaited() noexcept { return awaited_; }

  // Call before the signals are destroyed, once every publication has completed or failed. Records
  // completed publications with their times and waits for visitors. After it, no signal or watched
  // source is read and no ReadTimes is called.
  void close() noexcept;

 private:
  explicit Timeline(uint32_t capacity);

  struct Entry {
    // value << 8 | pins. Value zero: reclaimed. Compare-and-swap makes a leader's pin and the
    // owner's reclaim exclusive.
    std::atomic<uint64_t> state{0};
    std::atomic<uint64_t> signal{0};
    std::atomic<bool> timed{false};
    bool led = false;     // a leader waits in ROCr; under mutex_
    bool relied = false;  // the completion thread relies on the leader's wake-up; under mutex_
  };
  // Times of the timed publication that last used the place; under mutex_. Stored separately
  // because most publications are not timed.
  struct Times {
    uint64_t value = 0;
    ReadTimes read;
    std::vector<PacketTime> times;
  };

  static constexpr uint64_t pin_bits = 8;
  static constexpr uint64_t state_of(uint64_t value) noexcept { return value << pin_bits; }
  Entry& entry(uint64_t value) noexcept { return entries_[place(value)]; }
  // A thread that may read signals. Converts to false if signals may already be destroyed: then
  // only recorded completions count.
  class Visit {
   public:
    explicit Visit(Timeline& timeline) noexcept : timeline_(timeline), inside_(timeline.enter()) {}
    ~Visit() {
      if (inside_) timeline_.leave();
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    explicit operator bool() const noexcept { return inside_; }

   private:
    Timeline& timeline_;
    const bool inside_;
  };

  bool enter() noexcept;
  // Release: close() sees that this thread's last read of a signal has happened.
  void leave() noexcept { visitors_.fetch_sub(1, std::memory_order_release); }
  void wake_awaited_server() noexcept;

  bool noted(uint64_t value) const noexcept {
    return done_.load(std::memory_order_acquire) >= value;
  }
  // is_done() and failed() for visitors and the owner.
  bool look(uint64_t value) noexcept;
  bool failing() noexcept;
  bool fired(uint64_t value) noexcept;
  void advance(uint64_t value) noexcept;
  void note_completed() noexcept;
  bool note_failure(hsa_status_t status, std::string text) noexcept;
  // fired() for the owner, the only thread that reuses signals.
  bool fired_for_owner(hsa_signal_t signal, uint64_t value) const noexcept;
  bool try_reclaim(uint64_t value) noexcept;
  bool watched_failed() noexcept;
  void keep_times_of(uint64_t value);
  static void keep_times(Times& times);
  WaitResult wait_blocked(uint64_t value, Deadline deadline);
  void lead(uint64_t value, hsa_signal_t signal, Deadline deadline) noexcept;

  const uint32_t capacity_;
  const size_t mask_;
  std::vector<Entry> entries_;
  std::vector<Times> times_;
  std::atomic<uint64_t> last_{0};  // highest value begun
  std::atomic<uint64_t> done_{0};  // highest value known complete
  uint64_t reclaimed_ = 0;         // highest value reclaimed; owner
  std::atomic<hsa_status_t> error_{HSA_STATUS_SUCCESS};
  std::atomic<const std::atomic<hsa_status_t>*> watched_{nullptr};
  std::atomic<bool> closed_{false};
  std::atomic<uint32_t> visitors_{0};

  // Protects waiters, failure text and times. An untimed submission never takes it.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Failure failure_;
  struct Dependent {
    Timeline* timeline;
    uint64_t value;  // highest value that it waits for
  };
  std::vector<Dependent> dependents_;  // under mutex_

  detail::AwaitedPublications awaited_;
};

inline uint64_t Timeline::begin(hsa_signal_t signal) noexcept {
  const uint64_t value = last_.load(std::memory_order_relaxed) + 1;
  Entry& e = entry(value);
  e.timed.store(false, std::memory_order_relaxed);
  e.signal.store(signal.handle, std::memory_order_relaxed);
  // Release: a thread that sees the value also sees its signal. This is enough against fail(),
  // which may load last_ too early to see this publication. A waiter checks error_ under the mutex
  // that fail() holds, so it either sees the failure or has made the publication visible to fail().
  e.state.store(state_of(value), std::memory_order_release);
  last_.store(value, std::memory_order_release);
  return value;
}

inline bool Timeline::fired_for_owner(hsa_signal_t signal, uint64_t value) const noexcept {
  if (closed_.load(std::memory_order_acquire) ||
      error_.load(std::memory_order_acquire) != HSA_STATUS_SUCCESS)
    return noted(value);
  return aql::load_acquire(signal) == 0;
}

inline void Timeline::advance(uint64_t value) noexcept {
  uint64_t known = done_.load(std::memory_order_relaxed);
  // Release: a thread that sees the value as done also sees the packets' writes, through the
  // acquire load of the signal.
  while (known < value && !done_.compare_exchange_weak(known, value, std::memory_order_acq_rel)) {
  }
}

inline bool Timeline::try_reclaim(uint64_t value) noexcept {
  Entry& e = entry(value);
  if (e.timed.load(std::memory_order_relaxed)) keep_times_of(value);
  uint64_t expected = state_of(value);
  return e.state.compare_exchange_strong(expected, 0, std::memory_order_acq_rel);
}

template <class F>
uint32_t Timeline::reclaim(uint32_t limit, F&& on_reclaimed) noexcept {
  uint32_t count = 0;
  while (count < limit && reclaimed_ != last_.load(std::memory_order_relaxed)) {
    const uint64_t value = reclaimed_ + 1;
    const hsa_signal_t signal{entry(value).signal.load(std::memory_order_relaxed)};
    if (!noted(value)) {
      if (!fired_for_owner(signal, value)) break;
      advance(value);
    }
    if (!try_reclaim(value)) break;
    reclaimed_ = value;
    on_reclaimed(value, signal);
    ++count;
  }
  return count;
}

}  // namespace uptempo
