// Waits for a publication: of any thread, and of the completion thread, which waits for several.
#include "aql/pause.hpp"
#include "engine/completion/timeline.hpp"
#include "engine/completion/timeline/signal_sleep.hpp"
#include "engine/runtime/counters.hpp"

namespace uptempo {

WaitResult Timeline::wait(uint64_t value, WaitPolicy policy, Deadline deadline) noexcept {
  detail::count(&detail::CounterBlock::host_waits);
  if (is_known(value)) return WaitResult::done;
  const detail::SignalRead reads(readers_);
  if (!reads) return is_known(value) ? WaitResult::done : WaitResult::failed;
  if (look(value)) return WaitResult::done;
  if (policy.mode != WaitMode::blocked) {
    const Deadline spin_end =
        policy.mode == WaitMode::active ? Deadline::never() : Deadline::after(policy.spin);
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
    if (failure_.noted()) return WaitResult::failed;
    if (deadline.passed()) return WaitResult::timed_out;
    if (leaders_.led(place(value))) {
      leaders_.sleep(lock, detail::until(deadline, detail::kLongestSleep));
      continue;
    }
    hsa_signal_t signal{0};
    // Fails only if the owner has just reclaimed the publication; the next look() returns true.
    if (!publications_.pin(value, signal)) continue;
    leaders_.lead(place(value));
    lock.unlock();
    detail::sleep_on(signal, deadline, [&] { return look(value) || failing(); });
    lock.lock();
    if (!stop_leading(value)) continue;
    lock.unlock();
    wake_awaited_server();
  }
}

Timeline::SleepRole Timeline::begin_sleep(uint64_t value, hsa_signal_t& signal) noexcept {
  if (!readers_.enter()) return SleepRole::finished;
  const SleepRole found = try_sleep(value, signal);
  if (found != SleepRole::leads) readers_.leave();
  return found;
}

Timeline::SleepRole Timeline::try_sleep(uint64_t value, hsa_signal_t& signal) noexcept {
  const std::lock_guard lock(mutex_);
  if (look(value) || failure_.noted()) return SleepRole::finished;
  if (leaders_.led(place(value))) {
    leaders_.rely(place(value));
    return SleepRole::led;
  }
  // Fails only if the owner has just reclaimed the publication.
  if (!publications_.pin(value, signal)) return SleepRole::finished;
  if (aql::has_interrupt(signal)) {
    leaders_.lead(place(value));
    return SleepRole::leads;
  }
  publications_.unpin(value);
  return SleepRole::without_event;
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
  return leaders_.leave(place(value));
}

}  // namespace uptempo
