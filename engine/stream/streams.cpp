#include "engine/stream/streams.hpp"

#include <utility>

#include "engine/stream/stream.hpp"
#include "engine/stream/streams_state.hpp"

namespace uptempo {
namespace {

thread_local CurrentStream* innermost = nullptr;

}  // namespace

Streams::Streams(const Agent& agent, const StreamsOptions& options)
    : state_(std::make_shared<detail::StreamsState>(agent, options)) {}

Streams::Streams(std::shared_ptr<detail::StreamsState> state) noexcept : state_(std::move(state)) {}

Streams::~Streams() = default;

Stream& Streams::default_stream() {
  std::call_once(default_once_, [this] {
    default_.reset(new Stream(state_, {}, true));
    default_->take_queue();
  });
  return *default_;
}

Stream& Streams::current() {
  for (const CurrentStream* guard = innermost; guard != nullptr; guard = guard->outer_)
    if (guard->stream_.streams_ == state_) return guard->stream_;
  return default_stream();
}

void Streams::synchronize(WaitPolicy policy) {
  std::vector<Event> events;
  state_->for_each_queue(
      [&](detail::StreamQueue& queue) { events.push_back(queue.event_for_all()); });
  state_->transfers().for_each_lane(
      [&](detail::CopyLane& lane) { events.push_back(lane.event_for_all()); });
  for (const Event& event : events) event.wait(policy);
  detail::release_retired();
}

uint32_t Streams::hardware_queues() const { return state_->queues(); }

std::string Streams::describe() const { return state_->describe(); }

std::string Streams::report() const { return state_->report(); }

const KernargPlace& Streams::kernargs() const noexcept { return state_->place(); }

const Agent& Streams::agent() const noexcept { return *state_->agent(); }

CurrentStream::CurrentStream(Stream& stream) noexcept
    : stream_(stream), outer_(std::exchange(innermost, this)) {}

CurrentStream::~CurrentStream() { innermost = outer_; }

}  // namespace uptempo
