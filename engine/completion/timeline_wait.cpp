// Waits for a publication: of any thread, and of the completion thread, which waits for several.
#include <algorithm>
#include <utility>

#include <uptempo/aql/pause.hpp>
#include <uptempo/completion/timeline.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/signal.hpp>

namespace uptempo {
namespace {

// Time until the deadline, between zero and kLongestSleep.
std::chrono::nanoseconds until(Deadline deadline) noexcept {
  using std::chrono::nanoseconds;
  if (deadline.is_never()) return detail::kLongestSleep;
  if (deadline.is_now()) return {};
  return std::clamp<nanoseconds>(deadline.when() - Deadline::Clock::now(), nanoseconds::zero(),
                                 detail::kLongestSleep);
}

// Sleeps on a signal of which this thread is the only waiter. Returns when `over()` is true or the
// deadline has passed. Calls `over` before each sleep, of at most kLongestSleep. On a signal
// without an event ROCr would spin; there the thread polls.
template <class Over>
void sleep_on(hsa_signal_t signal, Deadline deadline, Over&& over) noexcept {
  if (aql::has_interrupt(signal)) {
    while (!over() && !deadline.passed())
      hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1,
                                detail::ticks_in(until(deadline)), HSA_WAIT_STATE_BLOCKED);
    return;
  }
  for (aql::Pause pause(deadline, detail::kLongestPause); !over() && pause.wait();) {
  }
}

}  // namespace

WaitResult Timeline::wait(uint64_t value, WaitPolicy policy, Deadline deadline) noexcept {
  detail::count(&detail::CounterBlock::host_waits);
  if (is_known(value)) return WaitResult::done;
  const detail::SignalRead reads(readers_);
  if (!reads) return is_known(value) ? WaitResult::done : WaitResult::failed;
  if (look(value)) return WaitResult::done;
  if (policy.spin > std::chrono::nanoseconds::zero()) {
    const Deadline spin_end =
        policy.spin == WaitPolicy::active().spin ? Deadline::never() : Deadline::after(policy.spin);
    for (uint32_t round = 0;; ++round) {
      if (look(value)) return WaitResult::done;
      if (failing()) {
        const std::lock_guard lock(mutex_);  // after this, fail() no longer uses the signals
        return look(value) ? WaitResult::done : WaitResult::failed;
      }
      // Reading the clock costs as much as several polling rounds.
      if (round % 16 == 0) {
        if (deadline.passed()) return WaitResult::timed_out;
        if (spin_end.passed()) break;
      }
      if (round % 4096 == 4095) find_failed_copies();
      aql::cpu_relax();
    }
  }
  detail::count(&detail::CounterBlock::blocked_waits);
  return wait_blocked(value, deadline);
}

WaitResult Timeline::wait_blocked(uint64_t value, Deadline deadline) {
  for (;;) {
    failing();  // before the lock, because it takes the lock if the watched source holds an error
    std::unique_lock lock(mutex_);
    if (look(value)) return WaitResult::done;
    if (has_failed()) return WaitResult::failed;
    if (deadline.passed()) return WaitResult::timed_out;
    if (sleepers_[place(value)].led) {
      changed_.wait_for(lock, until(deadline));
      continue;
    }
    hsa_signal_t signal{0};
    // Fails only if the owner has just reclaimed the publication; the next look() returns true.
    if (!publications_.pin(value, signal)) continue;
    sleepers_[place(value)].led = true;
    lock.unlock();
    sleep_on(signal, deadline, [&] {
      find_failed_copies();
      return look(value) || failing();
    });
    lock.lock();
    if (!stop_leading(value)) continue;
    lock.unlock();
    wake_completion_thread();
  }
}

Timeline::SleepRole Timeline::begin_sleep(uint64_t value, hsa_signal_t& signal) noexcept {
  detail::SignalRead reads(readers_);
  if (!reads) return SleepRole::finished;
  const std::lock_guard lock(mutex_);
  if (look(value) || has_failed()) return SleepRole::finished;
  Sleepers& sleepers = sleepers_[place(value)];
  if (sleepers.led) {
    sleepers.relied = true;
    return SleepRole::led;
  }
  // Fails only if the owner has just reclaimed the publication.
  if (!publications_.pin(value, signal)) return SleepRole::finished;
  if (!aql::has_interrupt(signal)) {
    publications_.unpin(value);
    return SleepRole::without_event;
  }
  sleepers.led = true;
  reads.stay();  // until end_sleep()
  return SleepRole::leads;
}

void Timeline::end_sleep(uint64_t value) noexcept {
  {
    const std::lock_guard lock(mutex_);
    (void)stop_leading(value);
  }
  readers_.leave();
}

// Requires mutex_, and that this thread leads. Returns true if the completion thread relies on a
// wake-up.
bool Timeline::stop_leading(uint64_t value) noexcept {
  look(value);
  publications_.unpin(value);
  Sleepers& sleepers = sleepers_[place(value)];
  sleepers.led = false;
  changed_.notify_all();
  return std::exchange(sleepers.relied, false);
}

}  // namespace uptempo
