#include <uptempo/stream/stream.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <uptempo/aql/amd_abi.hpp>
#include <uptempo/completion/timeline/kept_times.hpp>
#include <uptempo/runtime/attempt.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/stream/streams_state.hpp>

namespace uptempo {

using detail::count;
using detail::CounterBlock;
using detail::StreamQueue;
using detail::StreamsState;

Stream::Stream(Streams& streams, const StreamOptions& options)
    : Stream(streams.state_, options, false) {
  take_queue();
}

Stream::Stream(std::shared_ptr<StreamsState> streams, const StreamOptions& options, bool is_default)
    : streams_(std::move(streams)),
      options_(options),
      follows_others_(streams_->options().legacy_default && options.blocking),
      is_default_(is_default) {
  waits_.reserve(8);
}

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this == &other) return *this;
  std::destroy_at(this);
  return *std::construct_at(this, std::move(other));
}

Stream::~Stream() {
  detail::release_retired();
  if (streams_ != nullptr && queue_ != nullptr) streams_->leave(*queue_);
}

void Stream::refuse_moved(const char* call) { detail::refuse_moved(call, "Stream"); }

void Stream::take_queue() {
  if (queue_ == nullptr) queue_ = &streams_->join(options_, false);
}

const Agent& Stream::agent() const {
  require_here("Stream::agent");
  return *streams_->agent();
}

detail::LaunchReservation Stream::reserve(const KernelInfo& kernel, const detail::LaunchGrid& on,
                                          bool takes_block) {
  return prepare().reserve(kernel, on, takes_block);
}

Tried<detail::LaunchReservation> Stream::try_reserve(const KernelInfo& kernel,
                                                     const detail::LaunchGrid& on) {
  return detail::attempt([&]() -> Tried<detail::LaunchReservation> {
    return prepare(Deadline::now()).reserve(kernel, on, true, Deadline::now());
  });
}

void Stream::commit(detail::LaunchReservation&& reserved, aql::Packet64& packet) noexcept {
  queue_->launch(std::move(reserved), position_, packet);
  if (follows_others_) [[unlikely]]
    note_order();
}

void Stream::begin_packet(Deadline latest) {
  require_here("Stream::launch");
  take_queue();
  if (follows_others_) follow_default(latest);
  drop_finished();
  if (position_.empty() && waits_.empty()) choose_queue();
  put_waits(latest);
}

void Stream::choose_queue() {
  if (owns_queue_) {
    if (!is_behind_host()) leave_own_queue();
  } else if (queue_->busy() || queue_->failed()) {
    queue_ = &streams_->rejoin(*queue_);
  }
}

// If this throws, the next call continues with the rest.
void Stream::follow_default(Deadline latest) {
  if (is_default_) {
    streams_->take_blocking(to_follow_);
    for (; !to_follow_.empty(); to_follow_.pop_back()) follow(to_follow_.back(), latest);
    return;
  }
  const uint64_t sequence = streams_->default_sequence();
  if (sequence == default_followed_) return;
  follow(streams_->default_last_work(), latest);
  default_followed_ = sequence;
}

void Stream::follow(detail::LastWork last_work, Deadline latest) {
  if (last_work.position.empty()) return after(last_work.copy, latest);
  if (last_work.queue == queue_) {
    queue_->come_after(position_, last_work.position);
    return;
  }
  Event event = last_work.queue->event_for(last_work.position, latest);
  event.behind_host_ = last_work.behind_host;
  after(event, latest);
}

// Call when the stream has submitted a packet, or a copy that it waits for.
void Stream::note_order() noexcept {
  detail::LastWork last_work{
      .queue = queue_, .position = position_, .behind_host = is_behind_host()};
  if (position_.empty()) last_work.copy = waits_.front();
  if (is_default_) {
    streams_->note_default(last_work);
  } else {
    streams_->note_blocking(last_work);
  }
}

void Stream::take_own_queue(Deadline latest) {
  if (owns_queue_) return;
  StreamQueue& own = streams_->join(options_, true);
  try {
    if (!position_.empty()) add(queue_->event_for(position_, latest));
  } catch (...) {
    streams_->leave(own);
    throw;
  }
  streams_->leave(*queue_);
  position_ = {};
  queue_ = &own;
  owns_queue_ = true;
}

void Stream::leave_own_queue() noexcept {
  try {
    StreamQueue& shared = streams_->join(options_, false);
    streams_->leave(*queue_);
    queue_ = &shared;
    owns_queue_ = false;
  } catch (const std::exception&) {
    // No shared queue can be created: the stream keeps its own.
  }
}

// Forgets completed waits first. A failed one stays: its failure is that of the stream's queue.
bool Stream::is_behind_host() noexcept {
  std::erase_if(gates_, [](const Event& gate) { return detail::is_done(gate.completion_); });
  return !gates_.empty();
}

void Stream::add(const Event& event) {
  const auto same = std::ranges::find_if(waits_, [&](const Event& other) {
    return detail::timeline_of(other.completion_) == detail::timeline_of(event.completion_);
  });
  if (same == waits_.end()) {
    waits_.push_back(event);
    return;
  }
  // The one that is kept stands for the writes that both cover.
  const bool others_wrote = same->written_by_.handle != event.written_by_.handle;
  if (same->completion_.value() < event.completion_.value()) *same = event;
  if (others_wrote) same->written_by_ = {};
}

void Stream::drop_finished() {
  std::erase_if(waits_, [this](const Event& event) {
    if (!detail::is_ready(event.completion_)) return false;
    if (queue_ != nullptr) queue_->note_finished(event, position_);
    count(&CounterBlock::waits_elided);
    return true;
  });
}

// Publishes the stream's collected waits in its queue.
void Stream::put_waits(Deadline latest) {
  if (waits_.empty()) return;
  queue_->after(position_, waits_, latest);
  waits_.clear();
}

Event Stream::record() {
  require_here("Stream::record");
  if (follows_others_ && is_default_) follow_default();
  drop_finished();
  if (position_.empty() && waits_.size() == 1) {
    count(&CounterBlock::markers_elided);
    Event event = waits_.front();
    // Earlier waits may have been for other agents, and were left out because they were over.
    if (position_.acquires_system) event.written_by_ = {};
    return event;
  }
  put_waits();
  Event event = queue_->event_for(position_);
  event.behind_host_ = is_behind_host();
  return event;
}

void Stream::record(TimedEvent& event) {
  require_here("Stream::record");
  if (follows_others_ && is_default_) follow_default();
  drop_finished();
  put_waits();
  Event& recorded = event;
  recorded = position_.empty() ? queue_->finished_event(position_)
                               : queue_->timed_event_for(position_, event.time_);
  recorded.behind_host_ = is_behind_host();
  if (recorded.completion_ != Completion()) return;
  count(&CounterBlock::markers_elided);
  uint64_t now_ns = 0;
  check(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &now_ns), "hsa_system_get_info",
        "the system's time");
  event.time_->set(now_ns);
}

void Stream::after(const Event& event) {
  require_here("Stream::after");
  after(event, Deadline::never());
}

void Stream::after(const Event& event, Deadline latest) {
  if (detail::is_ready(event.completion_)) {
    queue_->note_finished(event, position_);
    count(&CounterBlock::waits_elided);
    return;
  }
  if (event.behind_host_) {
    is_behind_host();
    take_own_queue(latest);
    gates_.push_back(event);
  }
  add(event);
}

namespace {

void refuse_null(hsa_signal_t signal, const char* call, const char* asked) {
  if (signal.handle != 0) return;
  throw Error({.code = ErrorCode::argument,
               .status = HSA_STATUS_ERROR_INVALID_SIGNAL,
               .call = call,
               .asked = asked,
               .found = "the null signal, which is the handle of a Signal that was moved from or "
                        "left to the Runtime",
               .remedy = "pass the Signal that it was moved to, or a new one"});
}

}  // namespace

void Stream::signal(hsa_signal_t signal, detail::SignalLoan loan) {
  require_here("Stream::signal");
  refuse_null(signal, "Stream::signal", "a decrement of a signal");
  prepare().signal(position_, signal, std::move(loan));
  if (follows_others_) note_order();
}

void Stream::after(hsa_signal_t signal, detail::SignalLoan loan, SignalSetBy setter) {
  require_here("Stream::after");
  refuse_null(signal, "Stream::after", "a wait for a signal");
  if (aql::load_acquire(signal) == 0) {
    position_.acquires_system = true;
    count(&CounterBlock::waits_elided);
    return;
  }
  if (setter == SignalSetBy::device) {
    prepare().after(position_, signal, std::move(loan));
    if (follows_others_) note_order();
    return;
  }
  is_behind_host();
  gates_.reserve(gates_.size() + 1);
  take_own_queue();
  drop_finished();
  put_waits();
  gates_.push_back(queue_->after(position_, signal, std::move(loan)));
  if (follows_others_) note_order();
}

template <class F>
bool Stream::for_all_work(const char* call, Deadline latest, F&& is_over) {
  require_here(call);
  if (follows_others_ && is_default_) follow_default(latest);
  for (const Event& event : waits_)
    if (!is_over(event)) return false;
  if (!position_.empty() && !is_over(queue_->event_for(position_, latest))) return false;
  position_ = {};
  waits_.clear();
  detail::release_retired();
  return true;
}

void Stream::synchronize(WaitPolicy policy) {
  for_all_work("Stream::synchronize", Deadline::never(), [&](const Event& event) {
    event.wait(policy);
    return true;
  });
}

bool Stream::synchronize(Deadline deadline, WaitPolicy policy) {
  try {
    return for_all_work("Stream::synchronize", deadline,
                        [&](const Event& event) { return event.wait(deadline, policy); });
  } catch (const Error& error) {
    if (!is_exhausted(error.code()) || !deadline.passed()) throw;
    return false;  // the deadline, not patience, ended the wait for room
  }
}

Tried<> Stream::try_synchronize(Deadline deadline, WaitPolicy policy) {
  return detail::attempt([&]() -> Tried<> {
    if (synchronize(deadline, policy)) return std::monostate{};
    return Refusal(ErrorCode::deadline, "Stream::try_synchronize");
  });
}

bool Stream::ready() {
  try {
    return for_all_work("Stream::ready", Deadline::now(),
                        [](const Event& event) { return event.ready(); });
  } catch (const Error& error) {
    if (!is_exhausted(error.code())) throw;
    return false;  // a queue without room for a marker has unfinished work
  }
}

TimedEvent::TimedEvent() : time_(std::make_shared<detail::EventTime>()) {}

uint64_t TimedEvent::ns() const {
  const bool is_complete = ready();  // throws if its queue has failed
  // times() reads the times of an epoch that has not been reclaimed.
  if (is_complete && !time_->ns()) completion().times();
  const std::optional<uint64_t> ns = time_->ns();
  if (ns == uint64_t{0}) detail::throw_no_times("TimedEvent::ns", "the time of an event");
  if (ns && is_complete) return *ns;
  throw Error({.code = ErrorCode::misuse,
               .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "TimedEvent::ns",
               .asked = "the time of an event",
               .found = is_complete ? "it was never recorded" : "it is not complete",
               .remedy = "record it, and wait for it first"});
}

Copier::Begun::~Begun() {
  if (stream == nullptr) return;
  try {
    stream->synchronize();
  } catch (...) {  // what has failed uses no memory of the caller, as far as it can be known
  }
}

}  // namespace uptempo
