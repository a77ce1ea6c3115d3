// The failure of a timeline: its sources, and what fails with it.
#include <algorithm>
#include <new>
#include <utility>

#include <uptempo/completion/completion_thread.hpp>
#include <uptempo/completion/timeline.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo {
namespace {

// Error source of a timeline after one of its signals has become negative.
constinit const std::atomic<hsa_status_t> kNegativeSignal{HSA_STATUS_ERROR};

// Starts the text of a failure that another queue has caused.
constexpr std::string_view kPassedOn = "a queue that it waits for has failed: ";

// The prefix is added once, however long the chain. Empty if memory is short.
std::string passed_on(const std::string& text) noexcept {
  try {
    return text.starts_with(kPassedOn) ? text : std::string(kPassedOn) + text;
  } catch (const std::bad_alloc&) {
    return {};
  }
}

}  // namespace

ErrorCode Failure::code() const noexcept {
  if (status == HSA_STATUS_ERROR_NOT_INITIALIZED) return ErrorCode::misuse;
  if (status == Session::MemoryFault::kStatus || status == Session::MemoryFault::kLost)
    return ErrorCode::device_lost;
  return ErrorCode::failed;
}

std::string_view remedy(const Failure& failure) noexcept {
  if (Session::is_parents()) return Session::kParentsRemedy;
  if (failure.status == HSA_STATUS_ERROR_OUT_OF_RESOURCES)
    return "use less private memory in the kernel (arrays of a work-item, spilled registers), free "
           "memory of the GPU, and create a new queue";
  return Session::MemoryFault::remedy(failure.status, "create a new queue");
}

Failure Timeline::failure() const {
  if (Session::is_parents())
    return {HSA_STATUS_ERROR_NOT_INITIALIZED, std::string(Session::kParentsReason)};
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool Timeline::fired(uint64_t value) noexcept {
  if (is_settled()) return is_known(value);
  switch (publications_.read(value)) {
    case detail::PublicationRing::Reading::complete:
      return true;
    case detail::PublicationRing::Reading::negative:
      // hsa_ext_amd.h, hsa_amd_memory_async_copy: a negative value means that the copy has failed.
      // The next check reports it, because the failure needs a lock that may be held here.
      watch(&kNegativeSignal);
      break;
    case detail::PublicationRing::Reading::pending:
      break;
  }
  return false;
}

// Must not hold mutex_: fail() takes it.
bool Timeline::failing() noexcept {
  if (has_failed()) return true;
  const std::atomic<hsa_status_t>* const source = watched_.load(std::memory_order_acquire);
  if (source == nullptr) return false;
  const hsa_status_t found = source->load(std::memory_order_acquire);
  if (found == HSA_STATUS_SUCCESS) return false;
  fail(found, source == &kNegativeSignal ? "the copy engine reported that a copy has failed"
                                         : "the owner of the borrowed queue reported an error");
  return true;
}

bool Timeline::watched_failed() noexcept {
  const detail::SignalRead reads(readers_);
  return reads && failing();
}

bool Timeline::fail(hsa_status_t status, std::string_view text) noexcept {
  std::vector<Dependent> dependents;
  std::string reason;
  {
    const std::lock_guard lock(mutex_);
    if (note_failure(status, text)) dependents.swap(dependents_);
    if (!dependents.empty()) reason = passed_on(failure_.text);
  }
  // Without the lock: dependents may also wait for this timeline.
  for (const auto& [timeline, value] : dependents)
    if (!is_known(value)) timeline->fail(status, reason);
  wake_completion_thread();
  return !is_known(publications_.last_begun());
}

// Requires mutex_. Returns true for the first failure.
bool Timeline::note_failure(hsa_status_t status, std::string_view given) noexcept {
  if (has_failed()) return false;
  // Publications that are complete by now stay complete. No signal is read after this, because
  // callers may destroy theirs.
  note_completed();
  try {
    failure_.text = given;
    // Work that waits for another queue is not what has failed.
    if (describe_ && !given.starts_with(kPassedOn))
      if (const std::string unfinished = describe_(); !unfinished.empty())
        failure_.text += "; first unfinished: " + unfinished;
  } catch (const std::bad_alloc&) {  // the failure matters more than its description
  }
  failure_.status = status;
  error_.store(status, std::memory_order_release);
  // The owner may begin a publication meanwhile that this does not see. A waiter checks for the
  // failure under mutex_, so it either sees the failure or has made the publication visible here.
  if (!readers_.closed()) {
    publications_.for_each_unfinished([](hsa_signal_t signal) {
      // Only from 1: a signal that has fired keeps its value. Pollers check for the failure and
      // need no wake-up.
      if (aql::has_interrupt(signal)) hsa_signal_cas_screlease(signal, 1, -1);
    });
  }
  for (const auto& [signal, value] : dependent_signals_)
    if (!is_known(value)) aql::rearm(signal, -1);
  dependent_signals_.clear();
  changed_.notify_all();
  return true;
}

void Timeline::complete_too(hsa_signal_t signal, uint64_t value, SignalPlace&& place) noexcept {
  const std::lock_guard lock(mutex_);
  if (!has_failed()) {
    place.front() = {signal, value};
    dependent_signals_.splice(dependent_signals_.end(), place);
  } else if (!is_known(value)) {
    aql::rearm(signal, -1);
  }
}

void Timeline::forget_signal(hsa_signal_t signal) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(dependent_signals_,
                [=](const Dependency& one) { return one.signal.handle == signal.handle; });
}

void Timeline::expect_dependent(Timeline& dependent) {
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(dependents_, &dependent, &Dependent::timeline) == dependents_.end())
    dependents_.push_back({&dependent, 0});
}

void Timeline::fail_too(Timeline& dependent, uint64_t value) noexcept {
  Failure failure;
  {
    const std::lock_guard lock(mutex_);
    if (is_known(value)) return;
    if (!has_failed()) {
      const auto known = std::ranges::find(dependents_, &dependent, &Dependent::timeline);
      if (known == dependents_.end())
        dependents_.push_back({&dependent, value});
      else
        known->value = std::max(known->value, value);
      return;
    }
    failure = {failure_.status, passed_on(failure_.text)};
  }
  dependent.fail(failure.status, failure.text);
}

// Must not hold mutex_: the completion thread takes it.
void Timeline::wake_completion_thread() noexcept {
  if (is_awaited_.load(std::memory_order_seq_cst))
    detail::CompletionThread::of_process().look_again();
}

}  // namespace uptempo
