#include "engine/dispatch/shared_queue.hpp"

#include "engine/dispatch/common_queue.hpp"
#include "engine/dispatch/queue_state.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo {

SharedQueue::SharedQueue(const Agent& agent, const QueueOptions& options)
    : agent_(agent),
      options_(detail::checked(options)),
      common_(std::make_shared<detail::CommonQueue>(agent, options.packets)) {}

Queue SharedQueue::producer() {
  if (!common_->alive()) {
    throw Error({.status = HSA_STATUS_ERROR_NOT_INITIALIZED,
                 .call = "SharedQueue::producer",
                 .asked = "a Queue over its HSA queue",
                 .found = "that queue has gone with the Runtime in which it was made",
                 .remedy = "make a new SharedQueue"});
  }
  return Queue(std::make_unique<detail::QueueState>(
      agent_, options_,
      detail::QueueState::Parts{.queue = handle(), .producers = aql::Producers::shared, .common = common_}));
}

hsa_queue_t* SharedQueue::handle() const noexcept { return common_->ring().queue(); }
uint32_t SharedQueue::ring_size() const noexcept { return common_->ring().ring_size(); }

}  // namespace uptempo
