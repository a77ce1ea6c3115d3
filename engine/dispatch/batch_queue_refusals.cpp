// Errors of a queue that refuses a request: the exhausted resource with its size and use, or the
// caller's mistake.
#include <fmt/format.h>

#include <uptempo/dispatch/batch_queue.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo::detail {

void QueueResources::throw_failed() const {
  const Failure failure = timeline_.failure();
  throw Error({.code = failure.code(),
               .status = failure.status,
               .call = "Queue",
               .asked = "a submission",
               .found = failure.text,
               .remedy = fmt::format("{}; this one takes no more work", remedy(failure))});
}

void QueueResources::throw_exhausted(ErrorCode resource_code, const std::string& resource,
                                     const std::string& size, const std::string& in_use) const {
  throw Error({.code = resource_code,
               .status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
               .call = "Queue",
               .asked = fmt::format("a free {}", resource),
               .found = fmt::format("{}: {}{}", size, in_use, first_unfinished()),
               .remedy =
                   "wait for earlier work, submit smaller batches, or make the queue with more "
                   "of it (QueueOptions)"});
}

void BatchQueue::refuse_ended(const Publication& publication) {
  const char* const what = publication.kept ? "recording" : "batch";
  const char* const call = publication.kept ? "Recording" : "BatchSubmitter";
  if (publication.kept || publication.ended_by == EndedBy::runtime)
    Session::refuse_ended(
        call, fmt::format("more of a {}", what), "the memory of its queues",
        fmt::format("keep the Runtime while the {} is in use, and make a new {} in a new Runtime",
                    what, what));
  throw Error(
      {.code = ErrorCode::misuse,
       .status = HSA_STATUS_ERROR_INVALID_QUEUE,
       .call = call,
       .asked = "more of a batch",
       .found = "its Queue no longer exists: it was destroyed, or another one was assigned to it",
       .remedy = "keep the Queue while the batch is in use, and make a new batch over another "
                 "Queue"});
}

ErrorCode BatchQueue::last_refusal() const noexcept {
  if (lack_ == Lack::publications) return ErrorCode::timeline;
  return lack_ == Lack::ring ? ErrorCode::ring : ErrorCode::signals;
}

void BatchQueue::throw_last_refusal(const Publication& publication) const {
  std::string in_use = fmt::format("{} publications are unfinished", timeline_.pending());
  if (lack_ == Lack::ring) in_use = fmt::format("{} are in use", ring_refusal_.occupancy);
  if (publication.published != 0)
    in_use += fmt::format("; {} of {} packets of this batch are published", publication.published,
                          publication.packets.size());
  switch (lack_) {
    case Lack::publications:
      throw_exhausted(ErrorCode::timeline, "place on the timeline",
                      fmt::format("{} publications", timeline_.capacity()), in_use);
    case Lack::signals:
      throw_exhausted(ErrorCode::signals, "completion signal",
                      fmt::format("{} signals", signals_.size(SignalKind::interrupt)), in_use);
    case Lack::timing_signals:
      throw_exhausted(ErrorCode::signals, "set of timing signals",
                      fmt::format("{} event-less signals", signals_.event_less()), in_use);
    default:
      throw_exhausted(ErrorCode::ring,
                      fmt::format("run of {} slots in the ring", ring_refusal_.requested),
                      fmt::format("{} slots", writer_->ring_size()), in_use);
  }
}

// Another unfinished publication must not use the caller's completion signal: setting it to 1 again
// would make that publication complete never or too early.
void BatchQueue::check_own_signal(const Publication& publication) const {
  for (uint64_t value = timeline_.oldest_pending(); value <= timeline_.last_begun(); ++value) {
    const Retained& held = retained_[timeline_.place(value)];
    if (held.completion.handle != publication.own_signal.handle || timeline_.is_done(value))
      continue;
    throw Error(
        {.code = ErrorCode::signals,
         .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
         .call = "BatchSubmitter::complete_with",
         .asked =
             fmt::format("signal 0x{:x} for one more publication", publication.own_signal.handle),
         .found = fmt::format("publication {}, which is not complete, still uses it", value),
         .remedy = "wait for that publication, or use one signal for each until its completion"});
  }
}

void BatchQueue::refuse_beside_others(const Publication& publication) const {
  throw Error({.code = ErrorCode::unavailable,
               .status = HSA_STATUS_ERROR_INVALID_QUEUE,
               .call = publication.kept ? "Recording" : "BatchSubmitter",
               .asked = fmt::format("a submission at index {}", writer_->next_index()),
               .found = fmt::format("write index {}: other code publishes to this HSA queue, too",
                                    writer_->visible_write_index()),
               .remedy = "submit to a Queue of your own; order the two by a Signal "
                         "(BatchSubmitter::after, complete_with)"});
}

void BatchQueue::refuse_longer_than_ring(const Publication& publication) const {
  throw Error({.code = ErrorCode::too_long,
               .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = publication.kept ? "Recording" : "BatchSubmitter",
               .asked = fmt::format("{} packets without waiting", publication.packets.size()),
               .found = fmt::format("a ring of {}, of which at most {} are free at a time",
                                    ring_size(), longest_run()),
               .remedy = "submit or replay with a deadline, or make the queue's ring larger"});
}

void BatchQueue::refuse_more(const Publication& publication, const char* asked) {
  // A partly published batch has a final plan and a final last packet.
  throw Error({.code = ErrorCode::misuse,
               .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = publication.kept ? "Recording" : "BatchSubmitter",
               .asked = asked,
               .found = fmt::format("{} of its {} packets are already published",
                                    publication.published, publication.packets.size()),
               .remedy = publication.kept ? "finish that replay on the same queue, or abandon() it"
                                          : "submit the rest of it first, or clear it"});
}

}  // namespace uptempo::detail
