#include "engine/dispatch/shared_queue.hpp"

#include "engine/dispatch/batch_queue.hpp"
#include "engine/dispatch/shared_hsa_queue.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo {

SharedQueue::SharedQueue(const Agent& agent, const QueueOptions& options)
    : agent_(agent),
      options_(detail::checked(options)),
      common_(std::make_shared<detail::SharedHsaQueue>(agent, options.packets, options.access)) {}

detail::SharedHsaQueue& SharedQueue::common(const char* call) const {
  if (common_) return *common_;
  detail::refuse_moved(call, "SharedQueue");
}

Queue SharedQueue::producer() {
  if (!common("SharedQueue::producer").alive()) {
    throw Error({.status = HSA_STATUS_ERROR_NOT_INITIALIZED,
                 .call = "SharedQueue::producer",
                 .asked = "a Queue over its HSA queue",
                 .found = "that queue was destroyed with the Runtime in which it was made",
                 .remedy = "make a new SharedQueue"});
  }
  return Queue(std::make_unique<detail::BatchQueue>(
      agent_, options_,
      detail::BatchQueue::Parts{.queue = handle(), .kernargs = {}, .common = common_}));
}

hsa_queue_t* SharedQueue::handle() const { return common("SharedQueue::handle").ring().queue(); }
uint32_t SharedQueue::ring_size() const {
  return common("SharedQueue::ring_size").ring().ring_size();
}

}  // namespace uptempo
