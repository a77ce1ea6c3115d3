#include <uptempo/c/queue.h>

#include <atomic>

#include <uptempo/c/call.hpp>
#include <uptempo/c/options.hpp>
#include <uptempo/c/queue_handle.hpp>

using namespace uptempo;
using namespace uptempo::c;

namespace {

uptempo_level converted(const Level& level) noexcept {
  return {level.capacity, level.in_use, level.peak, level.high};
}

}  // namespace

uptempo_status uptempo_queue_create(const uptempo_agent* agent,
                                    const uptempo_queue_options* options, uptempo_queue** queue) {
  return create(__func__, queue, [&] {
    const Agent& on = handle(agent, "agent").agent;
    return new uptempo_queue(on, queue_options_of(options_of(options, "options")));
  });
}

uptempo_status uptempo_queue_borrow(const uptempo_agent* agent, struct hsa_queue_s* hsa_queue,
                                    const uptempo_queue_options* options, uptempo_queue** queue) {
  return create(__func__, queue, [&] {
    const Agent& on = handle(agent, "agent").agent;
    return new uptempo_queue(on, place(hsa_queue, "hsa_queue"),
                             queue_options_of(options_of(options, "options")));
  });
}

uptempo_status uptempo_queue_fail(uptempo_queue* queue, int32_t hsa_status) {
  return guarded(__func__, [&] {
    uptempo_queue& failed = handle(queue, "queue");
    if (!failed.is_borrowed)
      refuse_parameter("queue", "the library created its HSA queue, and learns of its errors",
                       "call this for a borrowed queue");
    if (hsa_status == HSA_STATUS_SUCCESS)
      refuse_parameter("hsa_status", "it is 0, which is no error",
                       "pass what the error callback got");
    failed.error.store(static_cast<hsa_status_t>(hsa_status), std::memory_order_release);
  });
}

uptempo_status uptempo_queue_destroy(uptempo_queue* queue) {
  return destroy(__func__, queue, "queue");
}

uptempo_status uptempo_queue_last_submitted(const uptempo_queue* queue,
                                            uptempo_completion* completion) {
  return guarded(__func__, [&] {
    uptempo_completion& result = place(completion, "completion");
    result = completion_of(handle(queue, "queue").queue.last_submitted());
  });
}

uptempo_status uptempo_queue_drain(const uptempo_queue* queue, uint64_t timeout_ns) {
  return guarded(__func__, [&] { handle(queue, "queue").queue.drain(deadline_of(timeout_ns)); });
}

uptempo_status uptempo_queue_reclaim(uptempo_queue* queue) {
  return guarded(__func__, [&] { handle(queue, "queue").queue.reclaim(); });
}

uptempo_status uptempo_queue_report(const uptempo_queue* queue, char** text) {
  return create(__func__, text, [&] { return text_copy(handle(queue, "queue").queue.report()); });
}

uptempo_status uptempo_queue_describe(const uptempo_queue* queue, char** text) {
  return create(__func__, text, [&] { return text_copy(handle(queue, "queue").queue.describe()); });
}

uptempo_status uptempo_queue_get_info(const uptempo_queue* queue, uptempo_queue_info* info) {
  return guarded(__func__, [&] {
    const Queue& of = handle(queue, "queue").queue;
    (void)of.pressure();  // throws after the end of the Runtime, which destroys the HSA queue
    return_facts(uptempo_queue_info{.size = 0,
                                    .hsa_queue = of.handle(),
                                    .ring_packets = of.ring_size(),
                                    .kernargs_on_device = of.kernargs().is_on_device()},
                 info, "info");
  });
}

uptempo_status uptempo_queue_pressure(const uptempo_queue* queue, uptempo_pressure* pressure) {
  return guarded(__func__, [&] {
    const Pressure now = handle(queue, "queue").queue.pressure();
    return_facts(uptempo_pressure{.size = 0,
                                  .ring = converted(now.ring),
                                  .publications = converted(now.publications),
                                  .signals = converted(now.signals),
                                  .timing_signals = converted(now.timing_signals),
                                  .kernarg_slabs = converted(now.kernarg_slabs)},
                 pressure, "pressure");
  });
}
