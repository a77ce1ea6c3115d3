#include <uptempo/completion/timeline.hpp>

#include <algorithm>
#include <utility>

#include <uptempo/completion/waiter.hpp>
#include <uptempo/runtime/session.hpp>
#include <uptempo/runtime/signal.hpp>

namespace uptempo {

// Neither the list nor a timeline is ever freed, because Completions are plain values that may
// outlive every other object.
struct Timeline::All {
  static All& of_process() {
    static All* const instance = new All;
    return *instance;
  }

  std::mutex mutex;
  std::vector<std::unique_ptr<Timeline>> all;
  std::vector<Timeline*> free;
};

Timeline::Timeline(uint32_t capacity)
    : publications_(capacity), times_(places()), sleepers_(places()) {}

Timeline& Timeline::acquire(uint32_t capacity) {
  All& timelines = All::of_process();
  const std::lock_guard lock(timelines.mutex);
  const auto found = std::ranges::find(timelines.free, capacity, &Timeline::capacity);
  if (found == timelines.free.end()) {
    // Room for all, because release() runs in destructors.
    if (timelines.free.capacity() <= timelines.all.size())
      timelines.free.reserve(2 * timelines.all.size() + 1);
    return *timelines.all.emplace_back(std::unique_ptr<Timeline>(new Timeline(capacity)));
  }
  Timeline& timeline = **found;
  timelines.free.erase(found);
  timeline.reads_are_over_.store(false, std::memory_order_relaxed);
  timeline.readers_.open();
  return timeline;
}

Timeline::Census Timeline::census() {
  All& timelines = All::of_process();
  const std::lock_guard lock(timelines.mutex);
  return {.all = timelines.all.size(), .free = timelines.free.size()};
}

void Timeline::find_failed_copies() noexcept {
  if (!detail::Loans::any_of_process() || Session::is_parents()) return;
  using Clock = Deadline::Clock;
  static std::atomic<Clock::rep> next{0};
  const Clock::time_point now = Clock::now();
  Clock::rep due = next.load(std::memory_order_relaxed);
  if (now.time_since_epoch().count() < due ||
      !next.compare_exchange_strong(due, (now + detail::kLongestSleep).time_since_epoch().count(),
                                    std::memory_order_relaxed))
    return;
  All& timelines = All::of_process();
  const std::unique_lock lock(timelines.mutex, std::try_to_lock);
  if (!lock) return;  // the next look is soon
  for (const auto& timeline : timelines.all)
    if (timeline->loans_.any()) timeline->find_failed_copy();
}

void Timeline::find_failed_copy() noexcept {
  const detail::SignalRead reads(readers_);
  if (!reads) return;
  {
    const std::lock_guard lock(mutex_);
    loans_.sweep();
    // A caller may destroy its signal once any thread has found the publication complete.
    for (uint64_t value = publications_.last_known() + 1;
         value <= publications_.last_begun() &&
         publications_.owner_of(value) == detail::SignalOwner::queue && look(value);
         ++value) {
    }
  }
  failing();
}

void Timeline::leave_to_parent() noexcept {
  hsa_status_t none = HSA_STATUS_SUCCESS;
  error_.compare_exchange_strong(none, HSA_STATUS_ERROR_NOT_INITIALIZED);
  readers_.close();
}

void Timeline::close() noexcept {
  if (Session::is_parents()) return;
  {
    const std::lock_guard lock(mutex_);
    note_completed();
    times_.close([&](uint64_t value) { return is_known(value); });
    readers_.close();
    changed_.notify_all();
    describe_ = nullptr;
  }
  wake_completion_thread();
  readers_.wait_for_last();
}

void Timeline::release() noexcept {
  if (Session::is_parents()) return;
  close();
  watch(nullptr);
  {
    const std::lock_guard lock(mutex_);
    loans_.start(0);
    if (!is_known(publications_.last_begun())) return;
    failure_ = {};
    error_.store(HSA_STATUS_SUCCESS, std::memory_order_release);
    dependents_.clear();
    dependent_signals_.clear();
    publications_.reclaim_all();
  }
  All& timelines = All::of_process();
  const std::lock_guard lock(timelines.mutex);
  timelines.free.push_back(this);
}

void Timeline::expect_times(uint64_t value, size_t packets) {
  const std::lock_guard lock(mutex_);
  times_.reserve(place(value), packets);
}

void Timeline::time(ReadTimes read) {
  const std::lock_guard lock(mutex_);
  const uint64_t value = publications_.last_begun();
  times_.expect(place(value), value, std::move(read));
  publications_.set_timed(value);
}

void Timeline::keep_times_of(uint64_t value) {
  const std::lock_guard lock(mutex_);
  times_.keep(place(value));
}

std::vector<PacketTime> Timeline::times(uint64_t value) {
  if (!is_done(value)) return {};
  const std::lock_guard lock(mutex_);
  return times_.of(place(value), value);
}

// Requires mutex_.
void Timeline::note_completed() noexcept {
  for (uint64_t value = publications_.last_known() + 1;
       value <= publications_.last_begun() && fired(value); ++value)
    publications_.note(value);
}

bool Timeline::look(uint64_t value) noexcept {
  if (is_known(value)) return true;
  if (!fired(value)) return false;
  publications_.note(value);
  return true;
}

bool Timeline::is_done(uint64_t value) noexcept {
  if (is_known(value)) return true;
  if (value > last_begun()) return false;  // such as a stream's open epoch: no signal to read
  const detail::SignalRead reads(readers_);
  return reads ? look(value) : is_known(value);
}

Timeline::Glimpse Timeline::glimpse(uint64_t value) noexcept {
  if (is_known(value)) return {.is_complete = true};
  const detail::SignalRead reads(readers_);
  // The caller may destroy its signal once any thread has found the publication complete.
  if (!reads || is_settled() || publications_.owner_of(value) == detail::SignalOwner::caller)
    return {.is_complete = is_known(value)};
  if (look(value)) return {.is_complete = true};
  return {.is_complete = false, .signal = publications_.value_of(value)};
}

void Timeline::describe_with(std::function<std::string()> describe) {
  const std::lock_guard lock(mutex_);
  describe_ = std::move(describe);
}

std::string Timeline::describe_unfinished() {
  const std::lock_guard lock(mutex_);
  if (!describe_) return {};
  try {
    return describe_();
  } catch (const std::bad_alloc&) {  // for callers that may not throw
    return {};
  }
}

bool Timeline::has_left_device(uint64_t value) noexcept {
  if (is_done(value)) return true;
  // Acquire: the publications of a timeline with kept signals no longer change.
  return keeps_signals_.load(std::memory_order_acquire) && publications_.has_fired(value);
}

hsa_signal_t Timeline::lend(uint64_t value) {
  const detail::SignalRead reads(readers_);
  if (!reads) return {0};
  const std::lock_guard lock(mutex_);
  if (look(value) || has_failed()) return {0};
  // Fails only if the owner has just reclaimed the publication.
  hsa_signal_t signal{0};
  if (!publications_.pin(value, signal)) return {0};
  bool is_lent = false;
  try {
    is_lent =
        publications_.owner_of(value) == detail::SignalOwner::queue && loans_.add(value, signal);
  } catch (...) {
    publications_.unpin(value);
    throw;
  }
  // Release: the owner, which reclaims the publication only now, sees the loan.
  publications_.unpin(value);
  return is_lent ? signal : hsa_signal_t{0};
}

void Timeline::lent_to(uint64_t value, Timeline& borrower, uint64_t until) noexcept {
  const std::lock_guard lock(mutex_);
  loans_.settle(value, &borrower, until);
}

void Timeline::end_loan(uint64_t value) noexcept {
  const std::lock_guard lock(mutex_);
  loans_.settle(value, nullptr, 0);
}

void Timeline::await_loans(Deadline deadline) noexcept {
  for (detail::Waiter waiter(deadline);;) {
    std::optional<Completion> reader;
    if (loans_.any()) {
      const std::lock_guard lock(mutex_);
      reader = loans_.reader(publications_.last_known());
    }
    if (!reader || !waiter.wait(*reader)) return;
  }
}

bool Timeline::keep_if_lent(hsa_signal_t signal) noexcept {
  const std::lock_guard lock(mutex_);
  return loans_.keep(signal);
}

}  // namespace uptempo
