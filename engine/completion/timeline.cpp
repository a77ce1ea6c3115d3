#include "engine/completion/timeline.hpp"

#include <utility>

#include "engine/completion/timeline/timeline_list.hpp"
#include "engine/completion/waiter.hpp"
#include "engine/runtime/session.hpp"

namespace uptempo {

Timeline::Timeline(uint32_t capacity)
    : publications_(capacity), times_(places()), leaders_(places()) {}

Timeline& Timeline::acquire(uint32_t capacity) {
  Timeline& timeline = detail::TimelineList::of_process().take(capacity);
  timeline.reads_are_over_.store(false, std::memory_order_relaxed);
  timeline.readers_.open();
  return timeline;
}

Timeline::Census Timeline::census() { return detail::TimelineList::of_process().census(); }

void Timeline::leave_to_parent() noexcept {
  failure_.leave_to_parent();
  readers_.close();
}

void Timeline::close() noexcept {
  if (Session::is_parents()) return;
  {
    const std::lock_guard lock(mutex_);
    note_completed();
    times_.close([&](uint64_t value) { return is_known(value); });
    readers_.close();
    leaders_.wake_all();
    describe_ = nullptr;
  }
  wake_awaited_server();
  readers_.wait_for_last();
}

void Timeline::release() noexcept {
  if (Session::is_parents()) return;
  close();
  watch(nullptr);
  if (!is_known(publications_.last_begun())) return;
  {
    const std::lock_guard lock(mutex_);
    failure_.clear();
    loans_.start(0);
    publications_.reclaim_all();
  }
  detail::TimelineList::of_process().give_back(*this);
}

void Timeline::cancel() noexcept {
  if (const uint64_t value = publications_.last_begun(); publications_.is_timed(value)) {
    const std::lock_guard lock(mutex_);
    times_.forget(place(value));
  }
  publications_.cancel();
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

bool Timeline::fired(uint64_t value) noexcept {
  if (is_settled()) return is_known(value);
  switch (publications_.read(value)) {
    case detail::PublicationRing::Reading::complete:
      return true;
    case detail::PublicationRing::Reading::negative:
      // hsa_ext_amd.h, hsa_amd_memory_async_copy: a negative value means that the copy has failed.
      // The next check reports it, because the failure needs a lock that may be held here.
      failure_.watch_failed_copy();
      break;
    case detail::PublicationRing::Reading::pending:
      break;
  }
  return false;
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

// Must not hold mutex_: fail() takes it.
bool Timeline::failing() noexcept {
  if (failure_.noted()) return true;
  const detail::FailureRecord::Report found = failure_.reported();
  if (found.status == HSA_STATUS_SUCCESS) return false;
  fail(found.status, found.text);
  return true;
}

bool Timeline::watched_failed() noexcept {
  const detail::SignalRead reads(readers_);
  return reads && failing();
}

bool Timeline::fail(hsa_status_t status, std::string_view text) noexcept {
  std::vector<detail::FailureRecord::Dependent> dependents;
  std::string passed_on;
  {
    const std::lock_guard lock(mutex_);
    if (note_failure(status, text)) {
      dependents = failure_.take_dependents();
      if (!dependents.empty())
        passed_on = detail::FailureRecord::passed_on(failure_.failure().text);
    }
  }
  // Without the lock: dependents may also wait for this timeline.
  for (const auto& [timeline, value] : dependents)
    if (!is_known(value)) timeline->fail(status, passed_on);
  wake_awaited_server();
  return !is_known(publications_.last_begun());
}

// Requires mutex_. Returns true for the first failure.
bool Timeline::note_failure(hsa_status_t status, std::string_view given) noexcept {
  if (failure_.noted()) return false;
  // Publications that are complete by now stay complete. No signal is read after this, because
  // callers may destroy theirs.
  note_completed();
  std::string text;
  try {
    text = given;
    // Work that waits for another queue is not what has failed.
    if (describe_ && !detail::FailureRecord::is_passed_on(given))
      if (const std::string unfinished = describe_(); !unfinished.empty())
        text += "; first unfinished: " + unfinished;
  } catch (const std::bad_alloc&) {  // the failure matters more than its description
  }
  failure_.note(status, std::move(text));
  // The owner may begin a publication meanwhile that this does not see. A waiter checks for the
  // failure under mutex_, so it either sees the failure or has made the publication visible here.
  if (!readers_.closed()) {
    publications_.for_each_unfinished([](hsa_signal_t signal) {
      // Only from 1: a signal that has fired keeps its value. Pollers check for the failure and
      // need no wake-up.
      if (aql::has_interrupt(signal)) hsa_signal_cas_screlease(signal, 1, -1);
    });
  }
  failure_.take_signals([this](hsa_signal_t signal, uint64_t value) {
    if (!is_known(value)) aql::rearm(signal, -1);
  });
  leaders_.wake_all();
  return true;
}

void Timeline::complete_too(hsa_signal_t signal, uint64_t value, SignalPlace&& place) noexcept {
  const std::lock_guard lock(mutex_);
  if (!failure_.noted()) {
    place.front() = {signal, value};
    failure_.add_signal(std::move(place));
  } else if (!is_known(value)) {
    aql::rearm(signal, -1);
  }
}

void Timeline::forget_signal(hsa_signal_t signal) noexcept {
  const std::lock_guard lock(mutex_);
  failure_.remove_signal(signal);
}

void Timeline::expect_dependent(Timeline& dependent) {
  const std::lock_guard lock(mutex_);
  failure_.expect_dependent(dependent);
}

void Timeline::fail_too(Timeline& dependent, uint64_t value) noexcept {
  hsa_status_t status;
  std::string passed_on;
  {
    const std::lock_guard lock(mutex_);
    if (is_known(value)) return;
    if (!failure_.noted()) {
      failure_.add_dependent({&dependent, value});
      return;
    }
    status = failure_.failure().status;
    passed_on = detail::FailureRecord::passed_on(failure_.failure().text);
  }
  dependent.fail(status, passed_on);
}

hsa_signal_t Timeline::lend(uint64_t value) {
  const detail::SignalRead reads(readers_);
  if (!reads) return {0};
  const std::lock_guard lock(mutex_);
  if (look(value) || failure_.noted()) return {0};
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
  loans_.set_borrower(value, borrower, until);
}

void Timeline::end_loan(uint64_t value) noexcept {
  const std::lock_guard lock(mutex_);
  loans_.remove(value);
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

Failure Timeline::failure() const {
  if (Session::is_parents()) return detail::FailureRecord::left_to_parent();
  const std::lock_guard lock(mutex_);
  return failure_.failure();
}

// Must not hold mutex_: the completion thread takes it.
void Timeline::wake_awaited_server() noexcept {
  if (detail::AwaitedServer* const server = awaited_.server.load(std::memory_order_seq_cst))
    server->look_again();
}

}  // namespace uptempo
