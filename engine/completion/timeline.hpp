// The order of a queue's publications, and where waits for them happen.
//
// Each publication gets the next value and one completion signal. Invariant 5 makes completion monotonic: the packet with the signal
// has its barrier bit set, so a fired signal means that this value and all lower ones are complete.
//
// Who may call what
//   owner      begin, cancel, reclaim, has_room: the thread that owns the queue.
//   any thread is_done, wait, times, fail, failed, failure, last_begun, close.
//   the drain  begin_lookout, end_lookout (completion_thread.hpp).
// The owner takes no lock and never waits here; waiters and the owner meet in atomics only. Who asks from another thread counts as a
// visitor while it may look at a signal or at the watched error source; close() waits until the last visitor has left.
//
// Waiting. ROCr 5.2.3 lets only the first blocked waiter of a signal sleep and has the others spin (interrupt_signal.cpp,
// WaitRelaxed), so all blocking waiters of one publication elect a leader that waits in ROCr, and the others sleep on a condition variable.
// A leader pins its publication: the owner does not reuse its signal until the leader has left. On an event-less signal ROCr would spin;
// there the leader polls with growing pauses, at most 4 ms.
//
// Failure. After fail() every publication that has not completed ends with the failure, now and later; waiters are woken by poking their
// signals. What had completed before stays complete. No signal is looked at again, so a wait that has thrown ends the lifetime of the caller's.
// An error found in the watched source is a failure from then on, whatever the source reads later. So is a signal that has become negative, which is how a copy
// reports that it has failed; it is found by who looks at that publication.
//
// Lifetime. Timelines are never freed, because Completions are plain values that may outlive everything: a Queue takes one from a process-wide
// list and returns it. Values only grow over all of a timeline's lives, so all of an earlier life read as complete. Therefore only a life that
// lost publications keeps its timeline for good, as the one place that knows of the loss; every other one is used again, failed or not.
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

namespace detail {
class CompletionThread;
}

enum class WaitMode : uint8_t {
  active,   // spin: lowest latency, one core busy
  blocked,  // sleep in the driver: no core busy, 5-50 us more latency
  hybrid,   // spin for WaitPolicy::spin, then sleep
};

// Behind the spin window ROCr 5.2.3 polls for another 200 us before it sleeps (interrupt_signal.cpp, WaitRelaxed). So a longer window of ours makes no
// wait earlier and every long one dearer: with 20 us a wait of 24 ms takes 1.7 % of a core in all, with 100 us 2.3 %, measured with
// tools/wait_bench, whose README has the figures.
struct WaitPolicy {
  WaitMode mode = WaitMode::hybrid;
  std::chrono::nanoseconds spin = std::chrono::microseconds(20);
};

// Why a queue died.
struct Failure {
  hsa_status_t status = HSA_STATUS_SUCCESS;
  std::string text;
};
// What to do about it.
std::string_view remedy(const Failure& failure) noexcept;

// Start and end of a packet on the device, in nanoseconds of the system's monotonic domain.
struct PacketTime {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  std::chrono::nanoseconds duration() const noexcept { return std::chrono::nanoseconds(end_ns - start_ns); }
};

enum class WaitResult : uint8_t { done, timed_out, failed };

class Timeline {
 public:
  // One from the process-wide list, for `capacity` publications at a time.
  static Timeline& acquire(uint32_t capacity);
  // Closes it and gives it back to the list.
  void release() noexcept;
  // Timelines in existence and how many of them are free.
  struct Census {
    size_t all = 0, free = 0;
  };
  static Census census();

  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // Owner. Reads the times of a completed publication; called under the timeline's lock.
  using ReadTimes = std::function<void(std::vector<PacketTime>& times)>;

  bool has_room() const noexcept { return last_.load(std::memory_order_relaxed) - reclaimed_ < capacity_; }
  uint32_t capacity() const noexcept { return capacity_; }
  // For tables with a place for each unfinished publication: `capacity` rounded up to a power of two, and the place of one.
  size_t places() const noexcept { return mask_ + 1; }
  size_t place(uint64_t value) const noexcept { return value & mask_; }
  uint32_t pending() const noexcept {
    return static_cast<uint32_t>(last_.load(std::memory_order_relaxed) - reclaimed_);
  }
  // Registers the next publication; its signal holds 1. There is room.
  uint64_t begin(hsa_signal_t signal) noexcept;
  // Takes back the last begin(): nothing was published and the value was shown to nobody.
  void cancel() noexcept;
  // Marks the last begun publication as timed; `read` serves times() until it is reclaimed, and once more then.
  void time(ReadTimes read);
  // Calls on_reclaimed(value, signal) for up to `limit` finished publications, in order, whose signal no waiter uses any more.
  template <class F>
  uint32_t reclaim(uint32_t limit, F&& on_reclaimed) noexcept;
  uint64_t oldest_pending() const noexcept { return reclaimed_ + 1; }
  // Of a publication that has not been reclaimed.
  hsa_signal_t signal_of(uint64_t value) noexcept {
    return {entry(value).signal.load(std::memory_order_relaxed)};
  }

  // Any thread.
  uint64_t last_begun() const noexcept { return last_.load(std::memory_order_acquire); }
  bool is_done(uint64_t value) noexcept;
  // Whether somebody has found it complete already: a load.
  bool is_known(uint64_t value) const noexcept { return noted(value); }
  WaitResult wait(uint64_t value, WaitPolicy policy, Deadline deadline) noexcept;
  // Times of a done, timed publication; empty if it was not timed or more than capacity() publications have followed.
  std::vector<PacketTime> times(uint64_t value);

  // The first failure counts; of later calls only the answer: true if publications are lost.
  bool fail(hsa_status_t status, std::string text) noexcept;
  bool failed() noexcept {
    if (error_.load(std::memory_order_acquire) != HSA_STATUS_SUCCESS) return true;
    return watched_.load(std::memory_order_acquire) != nullptr && watched_failed();
  }
  // Packets of `dependent` wait on the device for `value`: should that be lost, now or later, they would wait for ever, so `dependent` fails, too. Allocates for the first
  // value of each dependent.
  void fail_too(Timeline& dependent, uint64_t value);
  // What failed() found.
  Failure failure() const;
  // Set by fail(); the error source of the queue's writer.
  const std::atomic<hsa_status_t>& error() const noexcept { return error_; }
  // A second error source, set by the owner of a borrowed queue; it lives until close(). Sleeping waiters look at it four times a second.
  void watch(const std::atomic<hsa_status_t>* source) noexcept {
    watched_.store(source, std::memory_order_release);
  }

  // For who sleeps on the signals of several timelines at once. `leads`: `signal` is the one to sleep on, nobody else does, and end_lookout() is
  // called afterwards, soon after the publication has finished. `led`: a thread sleeps on it, and wakes the drain when it has left.
  enum class Lookout : uint8_t { finished, leads, led, without_event };
  Lookout begin_lookout(uint64_t value, hsa_signal_t& signal) noexcept;
  void end_lookout(uint64_t value) noexcept;

  // The signals are about to go, after everything has completed or failed. Notes what has completed, with its times, and waits for visitors:
  // after it no signal and no watched source is looked at, and no ReadTimes called.
  void close() noexcept;

 private:
  friend class detail::CompletionThread;
  explicit Timeline(uint32_t capacity);

  struct Entry {
    // value << 8 | pins. Zero value: reclaimed. A leader's pin and the owner's reclaim exclude each other by compare-and-swap.
    std::atomic<uint64_t> state{0};
    std::atomic<uint64_t> signal{0};
    std::atomic<bool> timed{false};
    bool led = false;     // a leader waits in ROCr; under mutex_
    bool relied = false;  // the drain waits for the leader to leave; under mutex_
  };
  // Of the timed publication that used the place last; under mutex_. Apart, because most publications are not timed.
  struct Times {
    uint64_t value = 0;
    ReadTimes read;
    std::vector<PacketTime> times;
  };

  static constexpr uint64_t pin_bits = 8;
  static constexpr uint64_t state_of(uint64_t value) noexcept { return value << pin_bits; }
  Entry& entry(uint64_t value) noexcept { return entries_[place(value)]; }
  // A thread that may look at signals. False if it must not, because they may have gone: then only what was noted counts.
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
  // Release: close() sees this thread's last look at a signal done.
  void leave() noexcept { visitors_.fetch_sub(1, std::memory_order_release); }
  void wake_completion_thread() noexcept;

  bool noted(uint64_t value) const noexcept { return done_.load(std::memory_order_acquire) >= value; }
  // is_done() and failed() for visitors and the owner.
  bool look(uint64_t value) noexcept;
  bool failing() noexcept;
  bool fired(uint64_t value) noexcept;
  void advance(uint64_t value) noexcept;
  void note_completed() noexcept;
  bool note_failure(hsa_status_t status, std::string text) noexcept;
  // fired() for the owner, who alone gives signals a new use.
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

  mutable std::mutex mutex_;  // waiters, failure text, times; never taken by an untimed submission
  std::condition_variable changed_;
  Failure failure_;
  struct Dependent {
    Timeline* timeline;
    uint64_t value;  // the highest that it waits for
  };
  std::vector<Dependent> dependents_;  // under mutex_

  detail::AwaitedList awaited_;  // under the drain's mutex
  std::atomic<bool> is_awaited_{false};
};

inline uint64_t Timeline::begin(hsa_signal_t signal) noexcept {
  const uint64_t value = last_.load(std::memory_order_relaxed) + 1;
  Entry& e = entry(value);
  e.timed.store(false, std::memory_order_relaxed);
  e.signal.store(signal.handle, std::memory_order_relaxed);
  // Release: who finds the value finds its signal. No more is needed against fail(), which may look at last_ too early to see this publication: who
  // waits for it looks at error_ under the mutex that fail() holds, and either sees the failure or has shown fail() the publication.
  e.state.store(state_of(value), std::memory_order_release);
  last_.store(value, std::memory_order_release);
  return value;
}

inline bool Timeline::fired_for_owner(hsa_signal_t signal, uint64_t value) const noexcept {
  if (closed_.load(std::memory_order_acquire) || error_.load(std::memory_order_acquire) != HSA_STATUS_SUCCESS)
    return noted(value);
  return aql::load_acquire(signal) == 0;
}

inline void Timeline::advance(uint64_t value) noexcept {
  uint64_t known = done_.load(std::memory_order_relaxed);
  // Release: who sees the value done sees what the packets wrote, through the acquire load of the signal.
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
