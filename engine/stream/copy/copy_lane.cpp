#include <uptempo/stream/copy/copy_lane.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <uptempo/completion/waiter.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/say.hpp>

namespace uptempo::detail {

CopyLane::CopyLane(const Agent& gpu, Start start, const CopyLaneOptions& options)
    : options_(options),
      start_(std::move(start)),
      signals_(options.copies, 0),
      timeline_(Timeline::acquire(options.copies)),
      watch_(Session::current()),
      seen_done_(timeline_.last_begun()) {
  try {
    timeline_.allow_loans(signals_.size(SignalKind::interrupt));
    watch_.start(timeline_, gpu, &starting_);
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
      seen_done_(timeline_.last_begun()) {
  timeline_.allow_loans(signals_.size(SignalKind::interrupt));
}

CopyLane::~CopyLane() {
  const Deadline deadline = ends_by_ ? *ends_by_ : Deadline::after(options_.drain_timeout);
  finish(deadline);
  const bool lost = !timeline_.is_done(timeline_.last_begun());
  timeline_.close();
  watch_.stop();
  if (watch_.usable()) {
    timeline_.await_loans(deadline);
    timeline_.for_each_loan([this](hsa_signal_t signal) { signals_.leave_to_session(signal); });
    if (lost) signals_.leave_to_session();  // the engine may still write them
  }
  timeline_.release();
}

void CopyLane::check_failed() {
  if (!timeline_.failed()) return;
  const Failure failure = timeline_.failure();
  throw Error(
      {.code = failure.code(),
       .status = failure.status,
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
  timeline_.reclaim(static_cast<uint32_t>(due), [this](uint64_t, hsa_signal_t signal) noexcept {
    if (signal.handle != 0) signals_.give_back(signal);
  });
}

bool CopyLane::has_room() noexcept {
  if (timeline_.has_room() && signals_.has(SignalKind::interrupt)) return true;
  reclaim();
  timeline_.return_loans([this](hsa_signal_t signal) noexcept { signals_.give_back(signal); });
  return timeline_.has_room() && signals_.has(SignalKind::interrupt);
}

void CopyLane::wait_for_room(std::unique_lock<std::mutex>& lock, Waiter& waiter) {
  const Completion next = completion_of(timeline_, first_unfinished());
  lock.unlock();
  const bool in_time = waiter.wait(next);
  lock.lock();
  check_failed();
  if (in_time) return;
  throw Error({.code = ErrorCode::limit,
               .status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
               .call = "Stream::copy",
               .asked = fmt::format("a copy {}", options_.name),
               .found = fmt::format(
                   "{} of {} copies are unfinished; other queues still use the signals of the "
                   "others",
                   timeline_.pending(), options_.copies),
               .remedy = "wait for earlier copies, or create the Streams with a larger "
                         "CopyLimits::engine_copies"});
}

Event CopyLane::copy(const Copy& copy, std::span<const Event> after) {
  std::vector<LentSignal> borrowed;
  {
    const std::lock_guard lock(mutex_);
    borrowed.swap(borrowed_);  // reuses its capacity
  }
  for (const Event& event : after) {
    if (timeline_of(event.completion_) == &timeline_) continue;
    if (std::optional<LentSignal> one =
            LentSignal::borrow_in_time(event.completion_, Waiter(options_.patience), end_loans_))
      borrowed.push_back(std::move(*one));
  }
  std::unique_lock lock(mutex_);
  check_failed();
  for (Waiter waiter(options_.patience); !has_room();) wait_for_room(lock, waiter);
  // Everything that may fail, before the copy starts.
  dependencies_.reserve(borrowed.size() + 1);
  const Completion next = completion_of(timeline_, timeline_.last_begun() + 1);
  for (LentSignal& one : borrowed) one.expect_reader(next);
  dependencies_.clear();
  if (const uint64_t last = timeline_.last_begun(); !timeline_.is_done(last))
    dependencies_.push_back(timeline_.signal_of(last));
  for (const LentSignal& one : borrowed) dependencies_.push_back(one.signal());
  const hsa_signal_t done = signals_.take(SignalKind::interrupt);
  starting_.store(1, std::memory_order_relaxed);  // a fault may precede the return
  if (const hsa_status_t status = start_(copy, dependencies_, done); status != HSA_STATUS_SUCCESS) {
    starting_.store(0, std::memory_order_relaxed);
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
  timeline_.begin(done);
  starting_.store(0, std::memory_order_release);  // release: a reader of 0 sees the publication
  copies_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(copy.bytes, std::memory_order_relaxed);
  // If one of these queues fails, the lane fails, too: the engine would wait forever.
  for (LentSignal& one : borrowed) one.read_by(next);
  borrowed.clear();
  borrowed_.swap(borrowed);
  return Event(next);
}

Event CopyLane::event_for_all() {
  const uint64_t last = timeline_.last_begun();
  if (timeline_.is_done(last)) return {};
  return Event(completion_of(timeline_, last));
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
  return timeline_of(event.completion_) == &timeline_ && !is_done(event.completion_);
}

void CopyLane::finish(Deadline deadline) noexcept {
  ends_by_ = deadline;
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

}  // namespace uptempo::detail
