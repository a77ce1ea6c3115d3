#include <uptempo/dispatch/queue.hpp>

#include <fmt/format.h>

#include <utility>

#include <uptempo/dispatch/batch_queue.hpp>
#include <uptempo/dispatch/flight/flight_log.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo {

Queue::Queue(const Agent& agent, const QueueOptions& options)
    : state_(std::make_unique<detail::BatchQueue>(agent, options)) {}

Queue::Queue(std::unique_ptr<detail::BatchQueue> state) noexcept : state_(std::move(state)) {}

Queue Queue::borrow(const Agent& agent, hsa_queue_t* queue, const std::atomic<hsa_status_t>* error,
                    const QueueOptions& options) {
  return Queue(std::make_unique<detail::BatchQueue>(
      agent, options,
      detail::BatchQueue::Parts{.queue = queue, .kernargs = {}, .foreign_error = error}));
}

Queue::Queue(Queue&&) noexcept = default;
Queue& Queue::operator=(Queue&&) noexcept = default;
Queue::~Queue() = default;

detail::BatchQueue& Queue::state(const char* call) const {
  if (state_) return *state_;
  detail::refuse_moved(call, "Queue");
}

Completion Queue::last_submitted() const {
  detail::BatchQueue& queue = state("Queue::last_submitted");
  return detail::completion_of(queue.timeline(), queue.timeline().last_begun());
}

namespace {

[[noreturn]] void throw_ended(const char* call, const char* asked) {
  Session::refuse_ended(call, asked, "the queue", "make a new Runtime and a new Queue");
}

}  // namespace

Pressure Queue::pressure() const {
  detail::BatchQueue& queue = state("Queue::pressure");
  if (!queue.usable()) throw_ended("Queue::pressure", "the pressure of a queue");
  return queue.pressure();
}

std::string Queue::describe() const {
  detail::BatchQueue& queue = state("Queue::describe");
  if (!queue.usable()) throw_ended("Queue::describe", "the description of a queue");
  return queue.describe();
}

void Queue::drain(Deadline deadline) const {
  const Completion last = last_submitted();
  if (last.wait(deadline)) return;
  throw Error(
      {.code = ErrorCode::deadline,
       .status = HSA_STATUS_ERROR,
       .call = "Queue::drain",
       .asked = fmt::format("completion of publication {} within the deadline", last.value()),
       .found = "unfinished work" + state("Queue::drain").first_unfinished(),
       .remedy = "wait longer, or look at Queue::report()"});
}

std::string Queue::report() const {
  detail::BatchQueue& queue = state("Queue::report");
  std::string text;
  const bool read = queue.usable() && queue.timeline().while_open([&] {
    text = queue.flight_log(detail::FlightScope::all).text();
  });
  if (!read) throw_ended("Queue::report", "the last submissions of a queue");
  return text;
}

hsa_queue_t* Queue::handle() const { return state("Queue::handle").handle(); }
const Agent& Queue::agent() const { return *state("Queue::agent").agent(); }
uint32_t Queue::ring_size() const { return state("Queue::ring_size").ring_size(); }
const KernargPlace& Queue::kernargs() const { return state("Queue::kernargs").place(); }
bool Queue::has_device_ring() const {
  return state("Queue::has_device_ring").writer().has_device_ring();
}
void Queue::reclaim() {
  if (detail::BatchQueue& queue = state("Queue::reclaim"); queue.usable())
    queue.reclaim(UINT32_MAX);
}

SharedQueue::SharedQueue(const Agent& agent, const QueueOptions& options)
    : agent_(agent),
      options_(detail::checked(options)),
      common_(std::make_shared<detail::SharedHsaQueue>(agent, options.packets, options.access)) {}

SharedQueue::SharedQueue(const Agent& agent, const QueueOptions& options,
                         std::shared_ptr<detail::SharedHsaQueue> common)
    : agent_(agent), options_(detail::checked(options)), common_(std::move(common)) {}

SharedQueue SharedQueue::borrow(const Agent& agent, hsa_queue_t* queue,
                                const std::atomic<hsa_status_t>* error,
                                const QueueOptions& options) {
  return SharedQueue(agent, options,
                     std::make_shared<detail::SharedHsaQueue>(agent, queue, error, options.access));
}

void SharedQueue::publish_own(const std::function<void(uint64_t room)>& publish) {
  detail::SharedHsaQueue& queue = common("SharedQueue::publish_own");
  if (!queue.alive()) throw_ended("SharedQueue::publish_own", "packets of the caller's");
  queue.publish_own(publish);
}

detail::SharedHsaQueue& SharedQueue::common(const char* call) const {
  if (common_) return *common_;
  detail::refuse_moved(call, "SharedQueue");
}

Queue SharedQueue::producer() {
  if (!common("SharedQueue::producer").alive()) {
    throw Error({.code = ErrorCode::misuse,
                 .status = HSA_STATUS_ERROR_NOT_INITIALIZED,
                 .call = "SharedQueue::producer",
                 .asked = "a Queue over its HSA queue",
                 .found = common_->is_borrowed()
                              ? "the Runtime in which that queue was borrowed was destroyed"
                              : "that queue was destroyed with the Runtime in which it was made",
                 .remedy = "make a new SharedQueue"});
  }
  return Queue(std::make_unique<detail::BatchQueue>(
      agent_, options_,
      detail::BatchQueue::Parts{.queue = handle(),
                                .kernargs = {},
                                .foreign_error = common_->foreign_error(),
                                .common = common_}));
}

hsa_queue_t* SharedQueue::handle() const { return common("SharedQueue::handle").ring().queue(); }
uint32_t SharedQueue::ring_size() const {
  return common("SharedQueue::ring_size").ring().ring_size();
}

}  // namespace uptempo
