#include "engine/completion/timeline_watch.hpp"

#include <utility>

namespace uptempo::detail {

void TimelineWatch::start(Timeline& timeline, const Agent& gpu,
                          const std::atomic<uint32_t>* open_packets) {
  timeline_ = &timeline;
  agent_ = gpu.handle();
  open_packets_ = open_packets;
  end_.start(
      [&timeline] {
        timeline.fail(HSA_STATUS_ERROR_NOT_INITIALIZED, "the Runtime was destroyed");
        timeline.close();
      },
      [&timeline] { timeline.leave_to_parent(); });
  faults_ = session_->listen([this](const Session::MemoryFault& fault) {
    if (fault.agent.handle != agent_.handle) return false;
    // The loss of a GPU ends idle queues as well: work that they are given later would never run.
    const bool ends = has_open_packets() || fault.status == fault.kLost;
    return timeline_->fail(fault.status, fault.text) || ends;
  });
  listens_ = true;
}

void TimelineWatch::stop() noexcept {
  end_.stop();
  // The parent's locks may be held for ever.
  if (!std::exchange(listens_, false) || Session::is_parents()) return;
  if (has_open_packets() || !timeline_->is_done(timeline_->last_begun())) Session::give_up(agent_);
  session_->stop_listening(faults_);
}

}  // namespace uptempo::detail
