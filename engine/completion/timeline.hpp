// Timeline: the order of a queue's publications, and the waits for them. Private to the engine and
// its tests; users hold a Completion (completion.hpp).
//
// Each publication gets the next value and one completion signal. Invariant 5 makes completion
// monotonic: the packet with the signal has its barrier bit set, so a fired signal means that this
// value and all lower ones are complete.
//
// Thread safety:
//   owner       begin, reclaim, has_room: the thread that owns the queue. It takes no lock
//               and never waits here, except for timed and lent publications; it synchronizes with
//               waiters through atomics only.
//   any thread  is_done, has_left_device, wait, times, fail, failed, failure, last_begun, close,
//               lend. A thread counts as a reader while it may read a signal or the watched error
//               source; close() waits for the last reader. Reads after keep_signals() are not
//               counted.
//   completion thread  begin_sleep, end_sleep (completion_thread.hpp).
//
// Waits: ROCr 5.2.3 lets only the first blocked waiter of a signal sleep; others spin
// (interrupt_signal.cpp, WaitRelaxed). So the first blocked waiter of a publication leads: it
// sleeps on the signal and wakes the others, which sleep on a condition variable, when it leaves.
// One of these leads next if the publication is still unfinished.
//
// Errors: after fail(), every publication that has not completed ends with the failure, now and
// later. Waiters are woken by changing their signals. Completed publications stay complete. No
// signal is read again before keep_signals(), so the caller may destroy its signal after a wait has
// thrown. An error in the watched source becomes a permanent failure once any thread reads it. So
// does a negative signal value, with which a failed copy reports its error; the next check of that
// publication finds it.
//
// Lifetime: timelines are never freed. A Queue takes a timeline from a process-wide list and
// returns it. Values keep growing across uses, so all values of an earlier use read as complete. A
// timeline whose use lost publications is therefore never reused: it is the only record of the
// loss. All others are reused, failed or not.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <uptempo/aql/amd_abi.hpp>
#include <uptempo/aql/deadline.hpp>
#include <uptempo/completion/awaited_list.hpp>
#include <uptempo/completion/completion.hpp>
#include <uptempo/completion/timeline/kept_times.hpp>
#include <uptempo/completion/timeline/loans.hpp>
#include <uptempo/completion/timeline/publication_ring.hpp>
#include <uptempo/completion/timeline/signal_readers.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo {

// Why a queue failed.
struct Failure {
  hsa_status_t status = HSA_STATUS_SUCCESS;
  std::string text;

  // failed, device_lost, or misuse: the Runtime was destroyed.
  ErrorCode code() const noexcept;
};
// Advice for the caller of a failed call.
std::string_view remedy(const Failure& failure) noexcept;

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
  using ReadTimes = detail::KeptTimes::Read;

  bool has_room() const noexcept { return publications_.has_room(); }
  uint32_t capacity() const noexcept { return publications_.capacity(); }
  // For tables with one place per unfinished publication.
  size_t places() const noexcept { return publications_.places(); }
  size_t place(uint64_t value) const noexcept { return publications_.place(value); }
  uint32_t pending() const noexcept { return static_cast<uint32_t>(publications_.pending()); }
  // Registers the next publication. Its signal holds 1. Requires has_room().
  uint64_t begin(hsa_signal_t signal,
                 detail::SignalOwner owner = detail::SignalOwner::queue) noexcept {
    return publications_.begin(signal, owner);
  }
  // Marks the last begun publication as timed. times() calls `read` until the publication is
  // reclaimed; reclaiming calls it once more. Requires expect_times() before begin().
  void time(ReadTimes read);
  // The publication with this value, which has not begun, may be timed, with this many packets at
  // most. Throws std::bad_alloc.
  void expect_times(uint64_t value, size_t packets);
  // True if this publication is, or was, timed, and its times are not replaced by later ones.
  bool has_times(uint64_t value) const {
    const std::lock_guard lock(mutex_);
    return times_.has(place(value), value);
  }
  // Gives the event the time of the last packet of such a publication, now or later. Throws
  // std::bad_alloc, but not for the first event after expect_times().
  void want_time(uint64_t value, const std::shared_ptr<detail::EventTime>& event) {
    const std::lock_guard lock(mutex_);
    times_.want(place(value), detail::completion_of(*this, value), event);
  }
  // False if reclaim() would reclaim nothing.
  bool oldest_is_finished() const noexcept {
    if (publications_.pending() == 0) return false;
    const uint64_t value = publications_.oldest_pending();
    return is_known(value) || fired_for_owner(publications_.signal_of(value), value);
  }
  // Calls on_reclaimed(value, signal) for up to `limit` finished publications, in order, whose
  // signals no waiter uses any more. The null signal: it is on loan, and return_loans() returns it.
  template <class F>
  uint32_t reclaim(uint32_t limit, F&& on_reclaimed) noexcept;
  uint64_t oldest_pending() const noexcept { return publications_.oldest_pending(); }
  // Requires a publication that has not been reclaimed.
  hsa_signal_t signal_of(uint64_t value) noexcept { return publications_.signal_of(value); }
  // Packets of other queues may borrow the signals of publications, of which the queue has so many.
  // Throws std::bad_alloc.
  void allow_loans(size_t signals) {
    const std::lock_guard lock(mutex_);
    loans_.start(signals);
  }
  // Calls give_back(signal) for signals of reclaimed publications whose loans are over.
  template <class F>
  void return_loans(F&& give_back) noexcept {
    if (!loans_.any()) return;
    const std::lock_guard lock(mutex_);
    loans_.take_returned(std::forward<F>(give_back));
  }
  // Blocks until the packets that wait for the signals of complete publications have read them, or
  // the deadline. Does not wait for packets that may never do so.
  void await_loans(Deadline deadline) noexcept;
  // Calls f(signal) for each signal on loan, which must live until the borrowers' queues are
  // destroyed. Requires close() before.
  template <class F>
  void for_each_loan(F&& f) noexcept {
    const std::lock_guard lock(mutex_);
    loans_.for_each(std::forward<F>(f));
  }
  // Requires that no publication has begun since this one was reclaimed.
  detail::SignalOwner owner_of(uint64_t value) const noexcept {
    return publications_.owner_of(value);
  }

  // Describes the queue's unfinished work, for errors and messages. `describe` is called under the
  // timeline's lock, before a failure is noted and on request, never after close(). It may call
  // glimpse() and nothing else of the timeline that is not said to be a load.
  void describe_with(std::function<std::string()> describe);

  // Functions for any thread.
  // Returns the text of describe_with()'s function; empty without one, and after close().
  std::string describe_unfinished();
  // Calls f() unless the timeline is closed; close() waits for its end. For readers of the queue's
  // ring, which is freed after close(). Returns whether f() was called. Any thread.
  template <class F>
  bool while_open(F&& f) {
    const detail::SignalRead reads(readers_);
    if (!reads) return false;
    std::forward<F>(f)();
    return true;
  }
  // State of a publication, without looking for failures. `signal`: the value of its completion
  // signal, for an unfinished one with a signal of the queue. A publication with the caller's
  // signal counts as unfinished until another thread has found it complete.
  struct Glimpse {
    bool is_complete = false;
    std::optional<hsa_signal_value_t> signal{};
  };
  Glimpse glimpse(uint64_t value) noexcept;
  uint64_t last_begun() const noexcept { return publications_.last_begun(); }
  bool is_done(uint64_t value) noexcept;
  // True if an earlier check found it complete. Cost: one load.
  bool is_known(uint64_t value) const noexcept { return publications_.is_known(value); }
  WaitResult wait(uint64_t value, WaitPolicy policy, Deadline deadline) noexcept;
  // Returns times of a complete, timed publication. Empty if it was not timed or more than
  // capacity() publications have followed.
  std::vector<PacketTime> times(uint64_t value);

  // Records the first failure; later calls change nothing. Returns true if publications are lost.
  // If memory is short, the failure has no text, or one without the unfinished work.
  bool fail(hsa_status_t status, std::string_view text) noexcept;
  bool failed() noexcept { return has_failed() || (watches() && watched_failed()); }
  // Packets of `dependent` wait on the device for `value`. If `value` is lost, now or later, they
  // would wait forever, so `dependent` fails, too. Call expect_dependent() before, since the last
  // use of this timeline began.
  void fail_too(Timeline& dependent, uint64_t value) noexcept;
  // Allocates for the first value of each dependent: before the packets are published. Throws
  // std::bad_alloc.
  void expect_dependent(Timeline& dependent);
  // A packet of publication `value` decrements this event-less signal from 0. If the publication is
  // lost, now or later, the failure stores -1, so that no other queue waits forever. The signal
  // must live until forget_signal(). `place`: a list of one, made before the packet is published.
  struct Dependency {
    hsa_signal_t signal;
    uint64_t value;
  };
  using SignalPlace = std::list<Dependency>;
  void complete_too(hsa_signal_t signal, uint64_t value, SignalPlace&& place) noexcept;
  // After this call, no failure stores to the signal.
  void forget_signal(hsa_signal_t signal) noexcept;
  // Lends the publication's signal to packets of other queues (lent_signal.hpp). The queue does not
  // use it again before the loan is over. Call lent_to() or end_loan() once afterwards. Returns the
  // null signal for a publication that is complete or lost, or that has the caller's signal, and if
  // the queue may lend no more signals (loans.hpp). Throws std::bad_alloc.
  hsa_signal_t lend(uint64_t value);
  // The packets belong to the borrower's publication `until`. The loan is over when that is
  // complete. If it is lost, the loan ends with the borrower's queue, or never if that is borrowed.
  void lent_to(uint64_t value, Timeline& borrower, uint64_t until) noexcept;
  void end_loan(uint64_t value) noexcept;
  // Requires failed().
  Failure failure() const;
  // A failed copy wakes nobody: its signal becomes negative, and packets of other queues that wait
  // for it never run. So each thread that waits calls this now and then. It looks at the timelines
  // that have lent signals, four times a second at most.
  static void find_failed_copies() noexcept;
  // True if the publication's packets are complete. As is_done(), but after keep_signals() it also
  // becomes true for a lost publication, which stays lost. Requires last_begun() >= value.
  bool has_left_device(uint64_t value) noexcept;
  // Set by fail(). Also the error source of the queue's writer.
  const std::atomic<hsa_status_t>& error() const noexcept { return error_; }
  // Sets a second error source, which the owner of a borrowed queue writes and which must live
  // until close(). Sleeping waiters check it four times a second.
  void watch(const std::atomic<hsa_status_t>* source) noexcept {
    watched_.store(source, std::memory_order_release);
  }
  bool watches() const noexcept { return watched_.load(std::memory_order_acquire) != nullptr; }

  // For a thread that sleeps on the signals of several timelines. `leads`: sleep on `signal`, as
  // its only waiter, and call end_sleep() soon after the publication has finished. `led`: another
  // thread sleeps on it and wakes the completion thread when it leaves.
  enum class SleepRole : uint8_t { finished, leads, led, without_event };
  SleepRole begin_sleep(uint64_t value, hsa_signal_t& signal) noexcept;
  void end_sleep(uint64_t value) noexcept;
  // The completion thread's own.
  detail::AwaitedList& awaited() noexcept { return awaited_; }
  std::atomic<bool>& is_awaited() noexcept { return is_awaited_; }

  // Call before the signals are destroyed, once every publication has completed or failed. Records
  // completed publications with their times and waits for readers. After it, no signal or watched
  // source is read and no ReadTimes is called.
  void close() noexcept;
  // In the child of a fork, where other threads of the parent may have held the lock and have been
  // readers: fails and closes the timeline without waiting. Completed publications stay complete.
  // close() and release() do nothing then.
  void leave_to_parent() noexcept;
  // The queue is destroyed, so none of its packets reads a signal any more, also of lost
  // publications. Call after close().
  void end_reads() noexcept { reads_are_over_.store(true, std::memory_order_release); }
  bool reads_are_over() const noexcept { return reads_are_over_.load(std::memory_order_acquire); }
  // For work that may still execute. Call after close() if the signals of lost publications exist,
  // without other use, until the last call of has_left_device().
  void keep_signals() noexcept { keeps_signals_.store(true, std::memory_order_release); }

 private:
  struct All;  // the timelines of the process
  explicit Timeline(uint32_t capacity);

  // is_done() and failed() for readers and the owner.
  bool look(uint64_t value) noexcept;
  bool failing() noexcept;
  bool watched_failed() noexcept;
  void find_failed_copy() noexcept;
  // Cost: one load. Acquire: a thread that sees the error also sees what was noted before it.
  bool has_failed() const noexcept {
    return error_.load(std::memory_order_acquire) != HSA_STATUS_SUCCESS;
  }
  // True if no signal may be read: only recorded completions count.
  bool is_settled() const noexcept { return readers_.closed() || has_failed(); }
  bool fired(uint64_t value) noexcept;
  // fired() for the owner, the only thread that reuses signals.
  bool fired_for_owner(hsa_signal_t signal, uint64_t value) const noexcept {
    return is_settled() ? is_known(value) : aql::load_acquire(signal) == 0;
  }
  void note_completed() noexcept;
  void keep_times_of(uint64_t value);
  // Returns true if the signal is on loan, for return_loans() to return it.
  bool keep_if_lent(hsa_signal_t signal) noexcept;

  bool note_failure(hsa_status_t status, std::string_view text) noexcept;
  void wake_completion_thread() noexcept;

  WaitResult wait_blocked(uint64_t value, Deadline deadline);
  bool stop_leading(uint64_t value) noexcept;

  detail::PublicationRing publications_;
  detail::SignalReaders readers_;
  std::atomic<hsa_status_t> error_{HSA_STATUS_SUCCESS};
  std::atomic<const std::atomic<hsa_status_t>*> watched_{nullptr};
  std::atomic<bool> keeps_signals_{false};  // never reset: such a timeline is not reused
  std::atomic<bool> reads_are_over_{false};
  std::atomic<bool> is_awaited_{false};  // false: awaited_ is empty
  detail::AwaitedList awaited_;          // under the completion thread's mutex

  // Protects the members below. An untimed submission never takes it.
  mutable std::mutex mutex_;
  detail::KeptTimes times_;
  detail::Loans loans_;
  // By the places of publications.
  struct Sleepers {
    bool led = false;     // a thread sleeps on the signal
    bool relied = false;  // the completion thread relies on that thread's wake-up
  };
  std::vector<Sleepers> sleepers_;
  std::condition_variable changed_;  // a leader has left, or the timeline has failed or closed
  Failure failure_;
  // A timeline that fails with this one unless `value` is known to be complete by then.
  struct Dependent {
    Timeline* timeline;
    uint64_t value;
  };
  std::vector<Dependent> dependents_;
  SignalPlace dependent_signals_;
  std::function<std::string()> describe_;
};

template <class F>
uint32_t Timeline::reclaim(uint32_t limit, F&& on_reclaimed) noexcept {
  uint32_t count = 0;
  while (count < limit && publications_.pending() != 0) {
    const uint64_t value = publications_.oldest_pending();
    const hsa_signal_t signal = publications_.signal_of(value);
    if (!is_known(value)) {
      if (!fired_for_owner(signal, value)) break;
      publications_.note(value);
    }
    if (publications_.is_timed(value)) keep_times_of(value);
    if (!publications_.try_reclaim_oldest()) break;
    on_reclaimed(value, loans_.any() && keep_if_lent(signal) ? hsa_signal_t{0} : signal);
    ++count;
  }
  return count;
}

namespace detail {

// Never true for a publication that is lost.
inline bool is_done(const Completion& completion) noexcept {
  Timeline* const timeline = timeline_of(completion);
  return timeline == nullptr || timeline->is_done(completion.value());
}

}  // namespace detail
}  // namespace uptempo
