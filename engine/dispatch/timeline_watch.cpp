#include "engine/dispatch/timeline_watch.hpp"

#include <utility>

namespace uptempo::detail {

void TimelineWatch::start(Timeline& timeline, const Agent& gpu) {
  end_ = Owned(session_, Session::Kind::listener, reinterpret_cast<uint64_t>(&timeline),
               [](uint64_t handle) noexcept {
                 auto* const ended = reinterpret_cast<Timeline*>(handle);
                 ended->fail(HSA_STATUS_ERROR_NOT_INITIALIZED, "the Runtime has gone");
                 ended->close();
               });
  faults_ = session_->listen([&timeline, agent = gpu.handle()](const Session::MemoryFault& fault) {
    return fault.agent.handle == agent.handle && timeline.fail(fault.status, fault.text);
  });
  listens_ = true;
}

void TimelineWatch::stop() noexcept {
  end_.forget();
  if (std::exchange(listens_, false)) session_->stop_listening(faults_);
}

}  // namespace uptempo::detail
