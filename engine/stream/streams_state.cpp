#include "engine/stream/streams_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/completion/lent_signal.hpp"
#include "engine/completion/waiter.hpp"
#include "engine/runtime/error.hpp"
#include "engine/runtime/session.hpp"

namespace uptempo::detail {
namespace {

CopyLaneOptions of_lanes(const StreamsOptions& options) {
  return {.copies = options.copies.engine_copies,
          .patience = options.patience,
          .drain_timeout = options.queue.drain_timeout};
}

}  // namespace

StreamsState::StreamsState(const Agent& agent, const StreamsOptions& options)
    : StreamsState(
          options,
          [agent](const StreamQueueOptions& of_queue) {
            return std::make_unique<StreamQueue>(agent, of_queue);
          },
          std::nullopt) {
  agent_ = agent;
  place_ = choose_kernarg_place(agent, options.queue.kernargs);
  transfers_ = std::make_unique<Transfers>(agent, options.copies, options.engines,
                                           of_lanes(options), [this] { close_epochs(); });
}

StreamsState::StreamsState(const StreamsOptions& options, MakeQueue make_queue,
                           std::optional<Transfers::Parts> of_copies)
    : options_(options), make_queue_(std::move(make_queue)) {
  if (of_copies)
    transfers_ = std::make_unique<Transfers>(*std::move(of_copies), options.copies,
                                             of_lanes(options), [this] { close_epochs(); });
  const auto refuse = [](const char* asked, const char* found) {
    throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "Streams",
                 .asked = asked,
                 .found = found,
                 .remedy = "correct the StreamsOptions"});
  };
  if (options_.hardware_queues == 0) refuse("no hardware queue", "streams need at least one");
  if (options_.queue.publications < 2)
    refuse("fewer than two publications",
           "streams need one for others to wait on, and one to continue with");
  if (options_.copies.engine_copies == 0)
    refuse("no copy at a time per engine", "CopyLimits::engine_copies is at least one");
}

StreamsState::~StreamsState() {
  if (transfers_ == nullptr) return;  // its construction failed, before any queue was created
  // Finish all queues before the first is destroyed: their packets may use each other's signals.
  // One deadline covers all, however many of them hang.
  const Deadline deadline = Deadline::after(options_.queue.drain_timeout);
  // A queue that hangs and has no room for its marker does not delay the others.
  bool is_silent = true;
  const Deadline silent = Deadline::after(kSilentWait);
  for (Waiter waiter(deadline); !close_epochs() && waiter.wait();) {
    if (!is_silent || !silent.passed()) continue;
    is_silent = false;
    for_each_queue([&](StreamQueue& queue) {
      if (queue.busy())
        say_waiting(queue.timeline(), deadline, [&] { return queue.flight_name(); });
    });
  }
  for_each_queue([&](StreamQueue& queue) { queue.finish(deadline); });
  transfers_->for_each_lane([&](CopyLane& lane) { lane.finish(deadline); });
}

bool StreamsState::close_epochs() noexcept {
  bool are_closed = true;
  for_each_queue([&](StreamQueue& queue) { are_closed &= queue.close_open(); });
  return are_closed;
}

StreamQueue& StreamsState::make(StreamPriority priority, const std::vector<uint32_t>& cu_mask,
                                bool own) {
  auto place = std::make_unique<Place>();
  place->priority = priority;
  place->cu_mask = cu_mask;
  place->streams = 1;
  place->own = own;
  place->queue = make_queue_({.queue = options_.queue,
                              .priority = priority,
                              .cu_mask = cu_mask,
                              .epoch_packets = options_.epoch_packets,
                              .system_acquires = options_.system_acquires,
                              .patience = options_.patience,
                              .spill_bytes = options_.spill_bytes});
  place->queue->end_loans_by([this] { close_epochs(); });
  const size_t works = queues() + 1 + Transfers::kMostLanes;
  {
    const std::lock_guard lock(order_mutex_);
    blocking_.reserve(works);
  }
  const std::lock_guard lock(mutex_);
  return *places_.emplace_back(std::move(place))->queue;
}

StreamsState::Place& StreamsState::place_of(const StreamQueue& queue) noexcept {
  return **std::ranges::find_if(places_,
                                [&](const auto& place) { return place->queue.get() == &queue; });
}

StreamQueue& StreamsState::place(StreamPriority priority, const std::vector<uint32_t>& cu_mask) {
  if (StreamQueue* const queue = try_place(priority, cu_mask)) return *queue;
  const std::lock_guard making(making_mutex_);
  // Another thread may have created enough meanwhile.
  if (StreamQueue* const queue = try_place(priority, cu_mask)) return *queue;
  return make(priority, cu_mask, false);
}

StreamQueue* StreamsState::try_place(StreamPriority priority,
                                     const std::vector<uint32_t>& cu_mask) {
  const std::lock_guard lock(mutex_);
  Place* best = nullptr;
  uint32_t shared = 0;
  for (const auto& place : places_) {
    if (place->own || place->priority != priority || place->cu_mask != cu_mask ||
        place->queue->failed())
      continue;
    ++shared;
    if (best == nullptr || place->streams < best->streams) best = place.get();
  }
  if (best == nullptr || (best->streams != 0 && shared < options_.hardware_queues)) return nullptr;
  ++best->streams;
  return best->queue.get();
}

StreamQueue& StreamsState::place_again(StreamQueue& queue) noexcept {
  const std::lock_guard lock(mutex_);
  Place& now = place_of(queue);
  for (const auto& place : places_) {
    if (place->own || place->priority != now.priority || place->cu_mask != now.cu_mask) continue;
    if (place->queue->failed() || (place->queue->busy() && !now.queue->failed())) continue;
    --now.streams;
    ++place->streams;
    return *place->queue;
  }
  return queue;
}

void StreamsState::leave(StreamQueue& queue) noexcept {
  const std::lock_guard lock(mutex_);
  --place_of(queue).streams;
}

StreamQueue& StreamsState::take_own_queue(StreamPriority priority,
                                          const std::vector<uint32_t>& cu_mask) {
  if (StreamQueue* const queue = try_own_queue(priority, cu_mask)) return *queue;
  const std::lock_guard making(making_mutex_);
  // A queue may have become free, or the last one may have been taken.
  if (StreamQueue* const queue = try_own_queue(priority, cu_mask)) return *queue;
  return make(priority, cu_mask, true);
}

StreamQueue* StreamsState::try_own_queue(StreamPriority priority,
                                         const std::vector<uint32_t>& cu_mask) {
  const std::lock_guard lock(mutex_);
  uint32_t own = 0;
  for (const auto& place : places_) {
    if (!place->own || place->queue->failed()) continue;
    ++own;
    if (place->streams != 0 || place->priority != priority || place->cu_mask != cu_mask) continue;
    place->queue->close_open();  // the marker may not have fit when the queue was given back
    if (place->queue->busy()) continue;
    place->streams = 1;
    return place->queue.get();
  }
  if (own >= options_.own_queues) {
    throw Error({.status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
                 .call = "Stream::after",
                 .asked = "a wait for an action of the host",
                 .found = fmt::format(
                     "the stream would block others that share its hardware queue, and all {} "
                     "queues for streams that wait for the host are in use",
                     options_.own_queues),
                 .remedy = "create the Streams with more own_queues, or synchronize and destroy "
                           "streams that wait "
                           "for the host"});
  }
  return nullptr;
}

void StreamsState::give_back_own_queue(StreamQueue& queue) noexcept {
  queue.close_open();  // so that completion of the open epoch can be observed
  leave(queue);
}

// Places are never removed. Iterates without copying them, because queues that are short of signals
// call this.
void StreamsState::for_each_queue(const std::function<void(StreamQueue&)>& f) {
  const auto queue = [this](size_t index) -> StreamQueue* {
    const std::lock_guard lock(mutex_);
    return index < places_.size() ? places_[index]->queue.get() : nullptr;
  };
  for (size_t i = 0; StreamQueue* const next = queue(i); ++i) f(*next);
}

std::string StreamsState::report() {
  std::string all;
  for_each_queue([&](StreamQueue& queue) {
    const bool read = queue.usable() && queue.timeline().while_open([&] {
      all += queue.flight_log(FlightScope::all).text();
    });
    if (!read)
      Session::refuse_ended("Streams::report", "the last submissions of streams", "their queues",
                            "make a new Runtime and new Streams");
  });
  return all;
}

uint32_t StreamsState::queues() {
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(places_.size());
}

void StreamsState::take_blocking(std::vector<LastWork>& all) {
  const std::lock_guard lock(order_mutex_);
  all.insert(all.end(), blocking_.begin(), blocking_.end());
  blocking_.clear();
}

void StreamsState::note_blocking(const LastWork& last_work) noexcept {
  const std::lock_guard lock(order_mutex_);
  if (last_work.position.empty()) {
    // A lane completes its copies in order: the last one covers the earlier ones.
    const Completion& copy = last_work.copy.completion();
    for (LastWork& other : blocking_) {
      if (!other.position.empty()) continue;
      if (LentSignal::are_in_order(copy, other.copy.completion())) return;
      if (!LentSignal::are_in_order(other.copy.completion(), copy)) continue;
      other = last_work;
      return;
    }
    blocking_.push_back(last_work);
    return;
  }
  auto at = std::ranges::find_if(blocking_, [&](const LastWork& other) {
    return other.queue == last_work.queue && !other.position.empty();
  });
  if (at == blocking_.end()) at = blocking_.insert(at, LastWork{});
  // For several streams in one queue, keep the last packet: an epoch covers everything before it.
  // The default stream must acquire what other agents and engines wrote for any of them.
  const bool acquires_system =
      last_work.position.acquires_system || (!at->position.empty() && at->position.acquires_system);
  if (at->position.packet < last_work.position.packet) *at = last_work;
  at->position.acquires_system = acquires_system;
}

LastWork StreamsState::default_last_work() {
  const std::lock_guard lock(order_mutex_);
  return default_;
}

void StreamsState::note_default(const LastWork& last_work) noexcept {
  const std::lock_guard lock(order_mutex_);
  default_ = last_work;
  default_sequence_.fetch_add(1, std::memory_order_release);
}

}  // namespace uptempo::detail
