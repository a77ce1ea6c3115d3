#include "engine/completion/timeline.hpp"

#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <thread>
#include <utility>

#include "aql/amd_abi.hpp"
#include "engine/runtime/counters.hpp"
#include "engine/runtime/session.hpp"
#include "engine/runtime/signal.hpp"

namespace uptempo {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// All timelines of the process. Never destroyed; see timeline.hpp.
struct Registry {
  std::mutex mutex;
  std::vector<std::unique_ptr<Timeline>> all;
  std::vector<Timeline*> free;
};

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

// Describes the failure of one queue to a queue that waits for it. The prefix is added once,
// however long the chain.
std::string as_dependent(const std::string& text) {
  static constexpr std::string_view lead = "a queue that it waits for has failed: ";
  return text.starts_with(lead) ? text : std::string(lead) + text;
}

// Error source of a timeline after one of its signals has become negative.
constinit const std::atomic<hsa_status_t> negative_signal{HSA_STATUS_ERROR};

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

nanoseconds until(Deadline deadline, nanoseconds at_most) noexcept {
  if (deadline.is_never()) return at_most;
  if (deadline.is_now()) return nanoseconds::zero();
  return std::clamp<nanoseconds>(deadline.when() - Deadline::Clock::now(), nanoseconds::zero(),
                                 at_most);
}

}  // namespace

bool Timeline::enter() noexcept {
  // First check without counting, so that threads that poll in a loop cannot delay close().
  if (closed_.load(std::memory_order_acquire)) return false;
  // Sequentially consistent, like the store and the load in close(): one of the two sees the other.
  visitors_.fetch_add(1, std::memory_order_seq_cst);
  if (!closed_.load(std::memory_order_seq_cst)) return true;
  leave();
  return false;
}

// Must not hold mutex_: the completion thread takes it.
void Timeline::wake_awaited_server() noexcept {
  if (detail::AwaitedServer* const server = awaited_.server.load(std::memory_order_seq_cst))
    server->look_again();
}

Timeline::Timeline(uint32_t capacity)
    : capacity_(capacity),
      mask_(std::bit_ceil(size_t{capacity}) - 1),
      entries_(places()),
      times_(places()) {}

Timeline& Timeline::acquire(uint32_t capacity) {
  const std::lock_guard lock(registry().mutex);
  auto& free = registry().free;
  const auto found = std::find_if(free.begin(), free.end(),
                                  [&](const Timeline* t) { return t->capacity() == capacity; });
  if (found != free.end()) {
    Timeline& timeline = **found;
    free.erase(found);
    timeline.closed_.store(false, std::memory_order_release);
    return timeline;
  }
  return *registry().all.emplace_back(new Timeline(capacity));
}

Timeline::Census Timeline::census() {
  const std::lock_guard lock(registry().mutex);
  return {.all = registry().all.size(), .free = registry().free.size()};
}

void Timeline::close() noexcept {
  {
    const std::lock_guard lock(mutex_);
    note_completed();
    for (Times& t : times_) {
      if (noted(t.value)) keep_times(t);
      t.read = nullptr;
    }
    closed_.store(true, std::memory_order_seq_cst);
    changed_.notify_all();
  }
  wake_awaited_server();
  while (visitors_.load(std::memory_order_seq_cst) != 0)
    std::this_thread::sleep_for(microseconds(50));
}

void Timeline::release() noexcept {
  close();
  watch(nullptr);
  const uint64_t last = last_.load(std::memory_order_relaxed);
  if (!noted(last)) return;
  {
    const std::lock_guard lock(mutex_);
    failure_ = {};
    error_.store(HSA_STATUS_SUCCESS, std::memory_order_release);
    dependents_.clear();
    reclaimed_ = last;
  }
  const std::lock_guard lock(registry().mutex);
  registry().free.push_back(this);
}

void Timeline::cancel() noexcept {
  const uint64_t value = last_.load(std::memory_order_relaxed);
  Entry& e = entry(value);
  // The next publication gets the same value.
  if (e.timed.exchange(false, std::memory_order_relaxed)) {
    const std::lock_guard lock(mutex_);
    times_[place(value)] = {};
  }
  e.state.store(0, std::memory_order_relaxed);
  last_.store(value - 1, std::memory_order_release);
}

void Timeline::time(ReadTimes read) {
  const std::lock_guard lock(mutex_);
  const uint64_t value = last_.load(std::memory_order_relaxed);
  Times& t = times_[place(value)];
  t.value = value;
  t.read = std::move(read);
  t.times.clear();
  entry(value).timed.store(true, std::memory_order_relaxed);
}

bool Timeline::fired(uint64_t value) noexcept {
  if (closed_.load(std::memory_order_acquire) ||
      error_.load(std::memory_order_acquire) != HSA_STATUS_SUCCESS)
    return done_.load(std::memory_order_acquire) >= value;
  Entry& e = entry(value);
  // Acquire: the signal read below belongs to this value or a later one; the second check detects
  // the latter.
  if (e.state.load(std::memory_order_acquire) >> pin_bits != value)
    return done_.load(std::memory_order_acquire) >= value;
  const hsa_signal_t signal{e.signal.load(std::memory_order_relaxed)};
  const hsa_signal_value_t left = aql::load_acquire(signal);
  // hsa_ext_amd.h, hsa_amd_memory_async_copy: a negative value means that the copy has failed. The
  // next check reports it, because failure_ needs a lock that may be held here.
  if (left < 0 && e.state.load(std::memory_order_acquire) >> pin_bits == value)
    watch(&negative_signal);
  if (left != 0) return false;
  // The signal may have been re-armed and have fired for a later publication. Then this one is
  // complete, too.
  return e.state.load(std::memory_order_acquire) >> pin_bits == value ||
         done_.load(std::memory_order_acquire) >= value;
}

// Requires mutex_.
void Timeline::note_completed() noexcept {
  for (uint64_t value = done_.load(std::memory_order_acquire) + 1;
       value <= last_.load(std::memory_order_acquire) && fired(value); ++value)
    advance(value);
}

bool Timeline::look(uint64_t value) noexcept {
  if (noted(value)) return true;
  if (!fired(value)) return false;
  advance(value);
  return true;
}

bool Timeline::is_done(uint64_t value) noexcept {
  if (noted(value)) return true;
  const Visit visit(*this);
  return visit ? look(value) : noted(value);
}

bool Timeline::failing() noexcept {
  if (error_.load(std::memory_order_acquire) != HSA_STATUS_SUCCESS) return true;
  const std::atomic<hsa_status_t>* const watched = watched_.load(std::memory_order_acquire);
  if (watched == nullptr) return false;
  const hsa_status_t found = watched->load(std::memory_order_acquire);
  if (found == HSA_STATUS_SUCCESS) return false;
  fail(found, watched == &negative_signal ? "the copy engine reported that a copy has failed"
                                          : "the owner of the borrowed queue reported an error");
  return true;
}

bool Timeline::watched_failed() noexcept {
  const Visit visit(*this);
  return visit && failing();
}

void Timeline::keep_times_of(uint64_t value) {
  const std::lock_guard lock(mutex_);
  keep_times(times_[place(value)]);
}

void Timeline::keep_times(Times& times) {
  if (!times.read) return;
  times.read(times.times);
  times.read = nullptr;
}

std::vector<PacketTime> Timeline::times(uint64_t value) {
  if (!is_done(value)) return {};
  const std::lock_guard lock(mutex_);
  Times& t = times_[place(value)];
  if (t.value != value) return {};
  keep_times(t);
  return t.times;
}

WaitResult Timeline::wait(uint64_t value, WaitPolicy policy, Deadline deadline) noexcept {
  detail::count(&detail::CounterBlock::host_waits);
  if (noted(value)) return WaitResult::done;
  const Visit visit(*this);
  if (!visit) return noted(value) ? WaitResult::done : WaitResult::failed;
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
      pause();
    }
  }
  detail::count(&detail::CounterBlock::blocked_waits);
  return wait_blocked(value, deadline);
}

WaitResult Timeline::wait_blocked(uint64_t value, Deadline deadline) {
  Entry& e = entry(value);
  for (;;) {
    failing();  // before the lock, because it takes the lock if the watched source holds an error
    std::unique_lock lock(mutex_);
    if (look(value)) return WaitResult::done;
    if (error_.load(std::memory_order_relaxed) != HSA_STATUS_SUCCESS) return WaitResult::failed;
    if (deadline.passed()) return WaitResult::timed_out;
    if (e.led) {
      changed_.wait_for(lock, until(deadline, detail::longest_sleep));
      continue;
    }
    uint64_t expected = state_of(value);
    // Fails only if the owner has just reclaimed the publication; the next look() returns true.
    if (!e.state.compare_exchange_strong(expected, expected + 1, std::memory_order_acq_rel))
      continue;
    e.led = true;
    const hsa_signal_t signal{e.signal.load(std::memory_order_relaxed)};
    lock.unlock();
    lead(value, signal, deadline);
    lock.lock();
    e.led = false;
    look(value);
    e.state.fetch_sub(1, std::memory_order_acq_rel);
    changed_.notify_all();
    if (!std::exchange(e.relied, false)) continue;
    lock.unlock();
    wake_awaited_server();
  }
}

Timeline::Lookout Timeline::begin_lookout(uint64_t value, hsa_signal_t& signal) noexcept {
  if (!enter()) return Lookout::finished;
  const Lookout found = [&] {
    const std::lock_guard lock(mutex_);
    if (look(value) || error_.load(std::memory_order_relaxed) != HSA_STATUS_SUCCESS)
      return Lookout::finished;
    Entry& e = entry(value);
    if (e.led) {
      e.relied = true;
      return Lookout::led;
    }
    uint64_t expected = state_of(value);
    // Fails only if the owner has just reclaimed the publication.
    if (!e.state.compare_exchange_strong(expected, expected + 1, std::memory_order_acq_rel))
      return Lookout::finished;
    signal.handle = e.signal.load(std::memory_order_relaxed);
    if (aql::has_interrupt(signal)) {
      e.led = true;
      return Lookout::leads;
    }
    e.state.fetch_sub(1, std::memory_order_acq_rel);
    return Lookout::without_event;
  }();
  if (found != Lookout::leads) leave();
  return found;
}

void Timeline::end_lookout(uint64_t value) noexcept {
  {
    const std::lock_guard lock(mutex_);
    Entry& e = entry(value);
    e.led = false;
    look(value);
    e.state.fetch_sub(1, std::memory_order_acq_rel);
    changed_.notify_all();
  }
  leave();
}

void Timeline::lead(uint64_t value, hsa_signal_t signal, Deadline deadline) noexcept {
  if (aql::has_interrupt(signal)) {
    while (!look(value) && !failing() && !deadline.passed()) {
      hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1,
                                detail::ticks_in(until(deadline, detail::longest_sleep)),
                                HSA_WAIT_STATE_BLOCKED);
    }
    return;
  }
  for (nanoseconds pause_for = detail::first_pause;
       !look(value) && !failing() && !deadline.passed();
       pause_for = std::min(pause_for * 2, detail::longest_pause)) {
    std::this_thread::sleep_for(until(deadline, pause_for));
  }
}

bool Timeline::fail(hsa_status_t status, std::string text) noexcept {
  std::vector<Dependent> dependents;
  const std::string passed_on = as_dependent(text);
  {
    const std::lock_guard lock(mutex_);
    if (note_failure(status, std::move(text))) dependents.swap(dependents_);
  }
  // Without the lock: dependents may also wait for this timeline.
  for (const Dependent& dependent : dependents)
    if (!noted(dependent.value)) dependent.timeline->fail(status, passed_on);
  wake_awaited_server();
  return !noted(last_.load(std::memory_order_acquire));
}

void Timeline::fail_too(Timeline& dependent, uint64_t value) {
  Failure found;
  {
    const std::lock_guard lock(mutex_);
    if (error_.load(std::memory_order_relaxed) == HSA_STATUS_SUCCESS) {
      const auto at = std::ranges::find(dependents_, &dependent, &Dependent::timeline);
      if (at == dependents_.end()) {
        dependents_.push_back({&dependent, value});
      } else {
        at->value = std::max(at->value, value);
      }
      return;
    }
    if (noted(value)) return;
    found = failure_;
  }
  dependent.fail(found.status, as_dependent(found.text));
}

// Requires mutex_. Returns true for the first failure.
bool Timeline::note_failure(hsa_status_t status, std::string text) noexcept {
  if (error_.load(std::memory_order_relaxed) != HSA_STATUS_SUCCESS) return false;
  failure_ = {status, std::move(text)};
  // Publications that are complete by now stay complete. No signal is read after this, because
  // callers may destroy theirs.
  note_completed();
  error_.store(status, std::memory_order_release);
  const uint64_t last = last_.load(std::memory_order_acquire);
  for (uint64_t value = done_.load(std::memory_order_acquire) + 1; value <= last; ++value) {
    Entry& e = entry(value);
    if (closed_ || e.state.load(std::memory_order_acquire) >> pin_bits != value) continue;
    const hsa_signal_t signal{e.signal.load(std::memory_order_relaxed)};
    // Only from 1: a signal that has fired keeps its value. Pollers check error_ and need no
    // wake-up.
    if (aql::has_interrupt(signal)) hsa_signal_cas_screlease(signal, 1, -1);
  }
  changed_.notify_all();
  return true;
}

std::string_view remedy(const Failure& failure) noexcept {
  using Fault = Session::MemoryFault;
  return failure.status == Fault::status ? Fault::remedy : "create a new queue";
}

Failure Timeline::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace uptempo
