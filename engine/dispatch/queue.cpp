#include "engine/dispatch/queue.hpp"

#include <utility>

#include "engine/dispatch/queue_state.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo {

Queue::Queue(const Agent& agent, const QueueOptions& options)
    : state_(std::make_unique<detail::QueueState>(agent, options)) {}

Queue::Queue(std::unique_ptr<detail::QueueState> state) noexcept : state_(std::move(state)) {}

Queue Queue::borrow(const Agent& agent, hsa_queue_t* queue, aql::Producers producers,
                    const std::atomic<hsa_status_t>* error, const QueueOptions& options) {
  if (producers == aql::Producers::shared) {
    throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "Queue::borrow",
                 .asked = "shared producers on a queue of someone else's",
                 .found = "threads can share only a queue that was made for it",
                 .remedy = "make a SharedQueue, or borrow with Producers::foreign"});
  }
  return Queue(std::make_unique<detail::QueueState>(
      agent, options,
      detail::QueueState::Parts{
          .queue = queue, .producers = producers, .kernargs = {}, .foreign_error = error}));
}

Queue::Queue(Queue&&) noexcept = default;
Queue& Queue::operator=(Queue&&) noexcept = default;
Queue::~Queue() = default;

Completion Queue::last_submitted() const noexcept {
  return {state_->timeline(), state_->timeline().last_begun()};
}

hsa_queue_t* Queue::handle() const noexcept { return state_->handle(); }
const Agent& Queue::agent() const noexcept { return *state_->agent(); }
uint32_t Queue::ring_size() const noexcept { return state_->writer().ring_size(); }
uint32_t Queue::interrupt_signals() const noexcept { return state_->signals().interrupts(); }
Pressure Queue::pressure() const noexcept { return state_->pressure(); }
uint32_t Queue::free_kernarg_slabs() const noexcept { return state_->kernargs().free_slabs(); }
uint32_t Queue::free_signals() const noexcept { return state_->signals().free(SignalKind::interrupt); }
void Queue::reclaim() noexcept { state_->reclaim(UINT32_MAX); }

}  // namespace uptempo
