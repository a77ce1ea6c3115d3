#include <uptempo/completion/timeline_watch.hpp>

namespace uptempo::detail {

void TimelineWatch::start(Timeline& timeline, const Agent& gpu,
                          const std::atomic<uint32_t>* open_packets) {
  timeline_ = &timeline;
  agent_ = gpu.handle();
  open_packets_ = open_packets;
  const auto on_fault = [this](const Session::MemoryFault& fault) {
    if (fault.agent.handle != agent_.handle) return false;
    // The loss of a GPU ends idle queues as well: work that they are given later would never run.
    const bool ends = has_open_packets() || fault.status == fault.kLost;
    return timeline_->fail(fault.status, fault.text) || ends;
  };
  const auto at_end = [&timeline] {
    timeline.fail(HSA_STATUS_ERROR_NOT_INITIALIZED, "the Runtime was destroyed");
    timeline.close();
  };
  listener_.start(session_, {.on_fault = on_fault, .at_end = at_end, .in_child = [&timeline] {
                               timeline.leave_to_parent();
                             }});
}

void TimelineWatch::stop() noexcept {
  // The parent's locks may be held for ever.
  if (!listener_.listens() || Session::is_parents()) return;
  if (has_open_packets() || !timeline_->is_done(timeline_->last_begun())) Session::give_up(agent_);
  listener_.stop();
}

}  // namespace uptempo::detail
