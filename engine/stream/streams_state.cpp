#include <uptempo/stream/streams_state.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <uptempo/completion/waiter.hpp>
#include <uptempo/runtime/agent.hpp>
#include <uptempo/runtime/description.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo::detail {
namespace {

static_assert(static_cast<int>(StreamPriority::low) == HSA_AMD_QUEUE_PRIORITY_LOW &&
              static_cast<int>(StreamPriority::normal) == HSA_AMD_QUEUE_PRIORITY_NORMAL &&
              static_cast<int>(StreamPriority::high) == HSA_AMD_QUEUE_PRIORITY_HIGH);

const StreamsOptions& checked(const StreamsOptions& options) {
  const auto refuse = [](const char* asked, const char* found) {
    throw Error({.code = ErrorCode::argument,
                 .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "Streams",
                 .asked = asked,
                 .found = found,
                 .remedy = "correct the StreamsOptions"});
  };
  if (options.hardware_queues == 0) refuse("no hardware queue", "streams need at least one");
  for (auto queue = options.queues.begin(); queue != options.queues.end(); ++queue) {
    require_several_producers(queue->queue, "Streams");
    if (std::any_of(options.queues.begin(), queue,
                    [&](const BorrowedQueue& earlier) { return earlier.queue == queue->queue; }))
      refuse("an HSA queue of the caller's twice", "each may be listed once");
  }
  if (options.queue.publications < 2)
    refuse("fewer than two publications",
           "streams need one for others to wait on, and one to continue with");
  if (options.copies.engine_copies == 0)
    refuse("no copy at a time per engine", "CopyLimits::engine_copies is at least one");
  return options;
}

std::string acquires_of(const StreamsOptions& options, const Agent* agent,
                        const KernargPlace& kernargs) {
  if (options.system_acquires) return "at system scope, as the caller asked";
  const char* const memory = kernargs.is_on_device() ? "device memory" : "fine-grained host memory";
  if (kernargs_go_stale_in_l2(agent, kernargs.is_on_device()))
    return fmt::format("at system scope, because L2 may hold old kernargs in {}", memory);
  return fmt::format(
      "at agent scope, because L2 holds no old kernargs in {}; at system scope after the host or "
      "another agent may have written the data",
      memory);
}

std::string text_of(const KernargPlace& kernargs) {
  return fmt::format("in {} (placement {}: {})", name_of(kernargs.placement),
                     name_of(kernargs.asked), kernargs.reason);
}

}  // namespace

StreamsState::StreamsState(const Agent& agent, const StreamsOptions& options)
    : StreamsState(
          options,
          [agent](const StreamQueueOptions& of_queue) {
            return std::make_unique<StreamQueue>(agent, of_queue);
          },
          Transfers::parts_of(agent, options.choose_engines), agent) {}

StreamsState::StreamsState(const StreamsOptions& options, MakeQueue make_queue,
                           Transfers::Parts of_copies, const std::optional<Agent>& agent)
    : agent_(agent),
      kernargs_(agent ? choose_kernarg_place(*agent, options.queue.kernargs) : KernargPlace{}),
      options_(checked(options)),
      make_queue_(std::move(make_queue)),
      transfers_(agent, std::move(of_copies), options.copies,
                 {.copies = options.copies.engine_copies,
                  .patience = options.patience,
                  .drain_timeout = options.queue.drain_timeout},
                 [this] { close_epochs(); }) {
  for (const BorrowedQueue& borrowed : options_.queues) add_queue({}, false, borrowed, 0);
}

StreamsState::~StreamsState() {
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
  transfers_.for_each_lane([&](CopyLane& lane) { lane.finish(deadline); });
}

bool StreamsState::close_epochs() noexcept {
  bool are_closed = true;
  for_each_queue([&](StreamQueue& queue) { are_closed &= queue.close_open(); });
  return are_closed;
}

StreamsState::Member& StreamsState::member(const StreamQueue& queue) noexcept {
  return **std::ranges::find_if(queues_,
                                [&](const auto& member) { return member->queue.get() == &queue; });
}

StreamQueue& StreamsState::join(const StreamOptions& options, bool own) {
  const auto try_any = [&] { return own ? try_join_own(options) : try_join(options); };
  if (StreamQueue* const queue = try_any()) return *queue;
  const std::lock_guard making(making_mutex_);
  // Another thread may have created enough meanwhile, or a queue may have become free.
  if (StreamQueue* const queue = try_any()) return *queue;
  if (!own && borrows_for(options))
    throw Error({.code = ErrorCode::failed,
                 .status = HSA_STATUS_ERROR_INVALID_QUEUE,
                 .call = "Stream",
                 .asked = "a stream on the caller's HSA queues",
                 .found = fmt::format("all {} have failed", options_.queues.size()),
                 .remedy = "create the Streams with other queues"});
  return add_queue(options, own, {}, 1);
}

StreamQueue& StreamsState::add_queue(const StreamOptions& options, bool own,
                                     const BorrowedQueue& borrowed, uint32_t streams) {
  auto made = make_queue_({.queue = options_.queue,
                           .borrowed = borrowed,
                           .priority = static_cast<hsa_amd_queue_priority_t>(options.priority),
                           .cu_mask = options.cu_mask,
                           .epoch_packets = options_.epoch_packets,
                           .system_acquires = options_.system_acquires,
                           .patience = options_.patience});
  made->end_loans_by([this] { close_epochs(); });
  auto member = std::make_unique<Member>(
      Member{options.priority, options.cu_mask, own, streams, std::move(made)});
  const size_t works = queues() + 1 + Transfers::kMostLanes;
  {
    const std::lock_guard lock(order_mutex_);
    blocking_.reserve(works);
  }
  const std::lock_guard lock(mutex_);
  return *queues_.emplace_back(std::move(member))->queue;
}

void StreamsState::publish_own(const hsa_queue_t* queue,
                               const std::function<void(uint64_t room)>& publish) {
  constexpr const char *kCall = "Streams::publish_own", *kAsked = "packets of the caller's";
  if (queue == nullptr || std::ranges::count(options_.queues, queue, &BorrowedQueue::queue) == 0)
    throw Error({.code = ErrorCode::argument,
                 .status = HSA_STATUS_ERROR_INVALID_QUEUE,
                 .call = kCall,
                 .asked = kAsked,
                 .found = "the HSA queue is none of StreamsOptions::queues",
                 .remedy = "pass one that the Streams were created with"});
  StreamQueue* found = nullptr;
  for_each_queue([&](StreamQueue& each) { found = each.handle() == queue ? &each : found; });
  if (!found->usable())
    Session::refuse_ended(kCall, kAsked, "the streams", "make a new Runtime and new Streams");
  found->publish_own(publish);
}

StreamQueue* StreamsState::try_join(const StreamOptions& options) {
  const std::lock_guard lock(mutex_);
  Member* best = nullptr;
  uint32_t shared = 0;
  for (const auto& member : queues_) {
    if (!member->serves(options, false)) continue;
    ++shared;
    if (best == nullptr || member->streams < best->streams) best = member.get();
  }
  const bool may_add = !borrows_for(options) && shared < options_.hardware_queues;
  if (best == nullptr || (best->streams != 0 && may_add)) return nullptr;
  ++best->streams;
  return best->queue.get();
}

StreamQueue* StreamsState::try_join_own(const StreamOptions& options) {
  const std::lock_guard lock(mutex_);
  uint32_t own = 0;
  for (const auto& member : queues_) {
    own += member->own && !member->queue->failed();
    if (member->streams != 0 || !member->serves(options, true)) continue;
    member->queue->close_open();  // the marker may not have fit when the queue was given back
    if (member->queue->busy()) continue;
    member->streams = 1;
    return member->queue.get();
  }
  if (own < options_.own_queues) return nullptr;
  throw Error({.code = ErrorCode::limit,
               .status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
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

StreamQueue& StreamsState::rejoin(StreamQueue& queue) noexcept {
  const std::lock_guard lock(mutex_);
  Member& now = member(queue);
  for (const auto& other : queues_) {
    if (other->own || other->priority != now.priority || other->cu_mask != now.cu_mask) continue;
    if (other->queue->failed() || (other->queue->busy() && !now.queue->failed())) continue;
    --now.streams;
    ++other->streams;
    return *other->queue;
  }
  return queue;
}

void StreamsState::leave(StreamQueue& queue) noexcept {
  const std::lock_guard lock(mutex_);
  Member& left = member(queue);
  // So that completion of the open epoch can be observed. No other stream ends it.
  if (left.own) queue.close_open();
  --left.streams;
}

// Queues are never removed. Iterates without copying them, because queues that are short of signals
// call this.
void StreamsState::for_each_queue(const std::function<void(StreamQueue&)>& f) {
  const auto queue = [this](size_t index) -> StreamQueue* {
    const std::lock_guard lock(mutex_);
    return index < queues_.size() ? queues_[index]->queue.get() : nullptr;
  };
  for (size_t i = 0; StreamQueue* const next = queue(i); ++i) f(*next);
}

std::string StreamsState::describe() {
  bool usable = true;
  for_each_queue([&](StreamQueue& queue) { usable = usable && queue.usable(); });
  if (!usable)
    Session::refuse_ended("Streams::describe", "the description of streams", "their queues",
                          "make a new Runtime and new Streams");
  Description all(agent_ ? fmt::format("streams of {}", agent_->name()) : "streams");
  struct Queue {
    StreamQueue* queue;
    bool own;
    std::string title;
  };
  std::vector<Queue> queues;
  {
    const std::lock_guard lock(mutex_);
    constexpr const char* kPriorities[] = {"low", "normal", "high"};
    for (const auto& member : queues_)
      queues.push_back(
          {member->queue.get(), member->own,
           fmt::format("{} queue, priority {}, {} streams", member->own ? "own" : "shared",
                       kPriorities[static_cast<size_t>(member->priority)], member->streams)});
  }
  std::ranges::stable_partition(queues, [](const Queue& each) { return !each.own; });
  const auto own = std::ranges::count_if(queues, &Queue::own);
  const std::string most = fmt::format("{} for each priority and mask", options_.hardware_queues);
  all.line("shared hardware queues",
           fmt::format("{}, of at most {}", queues.size() - static_cast<size_t>(own),
                       options_.queues.empty()
                           ? most
                           : fmt::format("the caller's {} for streams of normal priority without a "
                                         "mask, and {} of others",
                                         options_.queues.size(), most)))
      .line("queues of streams that wait for the host",
            fmt::format("{}, of at most {}", own, options_.own_queues))
      .line("default stream", options_.legacy_default
                                  ? "before and after the work of blocking streams"
                                  : "like any other")
      .line("kernargs", text_of(kernargs_))
      .line("launches acquire", acquires_of(options_, agent(), kernargs_))
      .line("completion signals",
            fmt::format("with markers, and with at least one launch of {} of a queue",
                        epoch_packets(options_.queue, options_.epoch_packets)))
      .part(transfers_.describe());
  for (const Queue& each : queues) {
    Description of_queue(each.title);
    of_queue.line("compute units", each.queue->cu_mask());
    all.part(of_queue.part(each.queue->describe()).text());
  }
  return all.text();
}

std::string Transfers::describe() {
  Description all("copies");
  all.line("by the host", fmt::format("up to {} bytes, where it reaches both ends and the stream "
                                      "has no unfinished work",
                                      limits_.host_bytes))
      .line("by a kernel", fmt::format("up to {} bytes, in 2-D, and where the engine cannot",
                                       limits_.kernel_bytes))
      .line("by a copy engine", "larger ones")
      .line("pageable memory",
            fmt::format("staged up to {} bytes, pinned for the copy above", limits_.stage_bytes))
      .line("host data path", parts_.coherent_link
                                  ? "none: host stores to device memory are coherent over xGMI"
                              : parts_.hdp_flush != nullptr
                                  ? "flushed by a register after host stores to device memory"
                                  : "no flush register");
  for (const CopyDirection direction : {CopyDirection::to_device, CopyDirection::to_host})
    all.line(fmt::format("engines {}", name_of(direction)),
             parts_.engines[static_cast<size_t>(direction)].reason);
  for_each_lane([&](const CopyLane& lane) {
    all.line("copies so far",
             fmt::format("{}: {}, {} bytes", lane.name(), lane.copies(), lane.bytes()));
  });
  return all.text();
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
  return static_cast<uint32_t>(queues_.size());
}

void StreamsState::take_blocking(std::vector<LastWork>& all) {
  const std::lock_guard lock(order_mutex_);
  all.insert(all.end(), blocking_.begin(), blocking_.end());
  blocking_.clear();
}

void StreamsState::note_blocking(const LastWork& last_work) noexcept {
  const auto timeline = [](const LastWork& work) {
    return work.position.empty() ? timeline_of(work.copy.completion()) : &work.queue->timeline();
  };
  const std::lock_guard lock(order_mutex_);
  const auto same = std::ranges::find(blocking_, timeline(last_work), timeline);
  if (same == blocking_.end()) return blocking_.push_back(last_work);
  // For several streams in one queue or lane, keep the last packet or copy: it covers everything
  // before it. The default stream must acquire what other agents and engines wrote for any of them.
  const bool acquires_system = last_work.position.acquires_system || same->position.acquires_system;
  if (same->position.packet < last_work.position.packet ||
      same->copy.completion().value() < last_work.copy.completion().value())
    *same = last_work;
  same->position.acquires_system = acquires_system;
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

namespace uptempo {

Streams::Streams(const Agent& agent, const StreamsOptions& options)
    : state_(std::make_shared<detail::StreamsState>(agent, options)) {}

void Streams::publish_own(const hsa_queue_t* queue,
                          const std::function<void(uint64_t room)>& publish) {
  state_->publish_own(queue, publish);
}

Streams::Streams(std::shared_ptr<detail::StreamsState> state) noexcept : state_(std::move(state)) {}

Streams::~Streams() = default;

Stream& Streams::default_stream() {
  std::call_once(default_once_, [this] {
    default_.reset(new Stream(state_, {}, true));
    default_->take_queue();
  });
  return *default_;
}

void Streams::synchronize(WaitPolicy policy) { (void)synchronize(Deadline::never(), policy); }

bool Streams::synchronize(Deadline deadline, WaitPolicy policy) {
  std::vector<Event> events;
  state_->for_each_queue(
      [&](detail::StreamQueue& queue) { events.push_back(queue.event_for_all()); });
  state_->transfers().for_each_lane(
      [&](detail::CopyLane& lane) { events.push_back(lane.event_for_all()); });
  for (const Event& event : events)
    if (!event.wait(deadline, policy)) return false;
  detail::release_retired();
  return true;
}

uint32_t Streams::hardware_queues() const { return state_->queues(); }

std::string Streams::describe() const { return state_->describe(); }

std::string Streams::report() const { return state_->report(); }

const KernargPlace& Streams::kernargs() const noexcept { return state_->kernargs(); }

const Agent& Streams::agent() const noexcept { return *state_->agent(); }

}  // namespace uptempo
