#include "engine/stream/copy/copy_lane.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "engine/completion/end_wait.hpp"
#include "engine/runtime/counters.hpp"
#include "engine/runtime/error.hpp"
#include "engine/runtime/say.hpp"

namespace uptempo::detail {

CopyLane::CopyLane(const Agent& gpu, Start start, const CopyLaneOptions& options)
    : options_(options),
      start_(std::move(start)),
      signals_(options.copies, 0),
      timeline_(Timeline::acquire(options.copies)),
      watch_(Session::current()),
      seen_done_(timeline_.last_begun()) {
  try {
    loans_.resize(timeline_.places());
    watch_.start(timeline_, gpu);
  } catch (...) {
    watch_.stop();
    timeline_.release();
    throw;
  }
}

CopyLane::CopyLane(Start start, std::span<const hsa_signal_t> signals,
                   const CopyLaneOptions& options)
    : options_(options),
      start_(std::move(start)),
      signals_(signals),
      timeline_(Timeline::acquire(options.copies)),
      seen_done_(timeline_.last_begun()),
      loans_(timeline_.places()) {}

CopyLane::~CopyLane() {
  finish(Deadline::after(options_.drain_timeout));
  const bool lost = !timeline_.is_done(timeline_.last_begun());
  timeline_.close();
  watch_.stop();
  // The engine may still write them, or packets of other queues read them.
  if (watch_.usable() && (lost || !timeline_.await_loans(Deadline::after(options_.drain_timeout))))
    signals_.leave_to_session();
  timeline_.release();
}

void CopyLane::check_failed() {
  if (!timeline_.failed()) return;
  const Failure failure = timeline_.failure();
  throw Error(
      {.status = failure.status,
       .call = "Stream::copy",
       .asked = fmt::format("a copy {}", options_.name),
       .found = failure.text,
       .remedy = std::string(Session::MemoryFault::remedy(failure.status, "create new Streams"))});
}

uint64_t CopyLane::first_unfinished() noexcept {
  uint64_t next = timeline_.oldest_pending();
  while (next <= timeline_.last_begun() && timeline_.is_done(next)) ++next;
  return next;
}

void CopyLane::reclaim() noexcept {
  const uint64_t next = first_unfinished(), finished = next - timeline_.oldest_pending();
  // The next copy may still read the signal of the last complete one.
  const uint64_t due =
      next > timeline_.last_begun() ? finished : std::max(finished, uint64_t{1}) - 1;
  timeline_.reclaim(static_cast<uint32_t>(due),
                    [this](uint64_t value, hsa_signal_t signal) noexcept {
                      loans_[timeline_.place(value)].clear();
                      signals_.give_back(signal);
                    });
}

bool CopyLane::has_room() noexcept {
  if (timeline_.has_room() && signals_.has(SignalKind::interrupt)) return true;
  reclaim();
  if (!signals_.has(SignalKind::interrupt)) signals_.sweep();
  return timeline_.has_room() && signals_.has(SignalKind::interrupt);
}

void CopyLane::wait_for_room(std::unique_lock<std::mutex>& lock, Deadline deadline) {
  if (on_shortage_ && !signals_.has(SignalKind::interrupt)) {
    lock.unlock();
    on_shortage_();
    lock.lock();
    if (has_room()) return;
  }
  if (deadline.passed()) {
    throw Error({.status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
                 .call = "Stream::copy",
                 .asked = fmt::format("a copy {}", options_.name),
                 .found = fmt::format(
                     "{} of {} copies are unfinished; other queues still use the signals of the "
                     "others",
                     timeline_.pending(), options_.copies),
                 .remedy = "wait for earlier copies, or create the Streams with a larger "
                           "CopyLimits::engine_copies"});
  }
  const uint64_t next = first_unfinished();
  const bool waits = next <= timeline_.last_begun();
  lock.unlock();
  if (waits) {
    timeline_.wait(next, {}, deadline);
  } else {  // waiters or another queue's packets still use completed signals
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  lock.lock();
  check_failed();
}

Event CopyLane::copy(const Copy& copy, std::span<const Event> after) {
  std::vector<Borrowed> borrowed;
  {
    const std::lock_guard lock(mutex_);
    borrowed.swap(borrowed_);  // reuses its capacity
  }
  const auto is_elsewhere = [this](const Event& event) {
    return event.source_ != nullptr && event.source_ != this;
  };
  // Not under the lock: another signal source may be borrowing from this one.
  for (const Event& event : after) {
    if (!is_elsewhere(event)) continue;
    if (std::optional<Borrowed> one = event.source_->borrow_in_time(
            event.completion_.value(), options_.patience, on_shortage_))
      borrowed.push_back(std::move(*one));
  }
  std::unique_lock lock(mutex_);
  check_failed();
  for (std::optional<Deadline> deadline; !has_room();) {
    if (!deadline) deadline = Deadline::after(options_.patience);
    wait_for_room(lock, *deadline);
  }
  // Everything that may fail, before the copy starts.
  std::vector<SignalLoan>& loans = loans_[timeline_.place(timeline_.last_begun() + 1)];
  loans.reserve(borrowed.size());
  dependencies_.reserve(borrowed.size() + 1);
  for (const Event& event : after)
    if (is_elsewhere(event)) event.completion_.timeline_->expect_dependent(timeline_);
  dependencies_.clear();
  if (const uint64_t last = timeline_.last_begun(); !timeline_.is_done(last))
    dependencies_.push_back(timeline_.signal_of(last));
  for (const Borrowed& one : borrowed) dependencies_.push_back(one.signal);
  const hsa_signal_t done = signals_.take(SignalKind::interrupt);
  const uint64_t value = timeline_.begin(done);
  if (const hsa_status_t status = start_(copy, dependencies_, done); status != HSA_STATUS_SUCCESS) {
    timeline_.cancel();
    signals_.give_back(done);
    check(
        status, "hsa_amd_memory_async_copy",
        [&] {
          return fmt::format("{} bytes from {} to {} {}", copy.bytes, copy.from, copy.to,
                             options_.name);
        },
        "pass addresses inside memory that this agent may access, and engines that can copy in "
        "this direction");
  }
  copies_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(copy.bytes, std::memory_order_relaxed);
  for (Borrowed& one : borrowed) loans.push_back(std::move(one.loan));
  borrowed.clear();
  borrowed_.swap(borrowed);
  lock.unlock();
  // Otherwise the engine would wait forever.
  for (const Event& event : after)
    if (is_elsewhere(event))
      event.completion_.timeline_->fail_too(timeline_, event.completion_.value());
  return {*this, Completion(timeline_, value)};
}

Event CopyLane::event_for_all() {
  const std::lock_guard lock(mutex_);  // start_ may fail, which cancels the value just begun
  const uint64_t last = timeline_.last_begun();
  if (timeline_.is_done(last)) return {};
  return {*this, Completion(timeline_, last)};
}

uint32_t CopyLane::unfinished() noexcept {
  const uint64_t last = timeline_.last_begun();
  uint64_t done = seen_done_.load(std::memory_order_relaxed);
  const uint64_t seen = done;
  while (done < last && timeline_.is_done(done + 1)) ++done;
  // Another thread may store less, which only costs a look.
  if (done != seen) seen_done_.store(done, std::memory_order_relaxed);
  return done < last ? static_cast<uint32_t>(last - done) : 0;
}

bool CopyLane::is_unfinished(const Event& event) noexcept {
  return event.source_ == this && !timeline_.is_done(event.completion_.value());
}

void CopyLane::finish(Deadline deadline) noexcept {
  const uint64_t last = timeline_.last_begun();
  const auto name = [this] { return "the copies " + options_.name; };
  const WaitResult result = watch_.usable() && !timeline_.is_done(last)
                                ? wait_for_end(timeline_, last, deadline, name)
                                : WaitResult::done;
  if (result == WaitResult::timed_out)
    say([&] { return name() + " are destroyed before the last is finished"; });
  if (!timeline_.is_done(last))
    timeline_.fail(HSA_STATUS_ERROR, "its Streams were destroyed before the copy was finished");
  const std::lock_guard lock(mutex_);
  if (watch_.usable() && !timeline_.failed()) reclaim();
}

std::optional<SignalSource::Borrowed> CopyLane::borrow(uint64_t value) {
  const std::lock_guard lock(mutex_);
  return lend(timeline_, signals_, value, [this] { check_failed(); });
}

void CopyLane::give_back_loans() noexcept {
  const std::lock_guard lock(mutex_);
  if (!timeline_.failed()) reclaim();
}

}  // namespace uptempo::detail
