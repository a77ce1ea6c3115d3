// What ends the work of a timeline from outside: the end of the Runtime, and memory faults of its agent. Private to the engine.
//
// Who owns a timeline, and what its work uses, has one of these. Thread safety: one owner; what it listens to comes on any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/dispatch/timeline.hpp"
#include "engine/runtime/agent.hpp"
#include "engine/runtime/session.hpp"

namespace uptempo::detail {

class TimelineWatch {
 public:
  // Without ROCr: nothing ends anything.
  TimelineWatch() = default;
  explicit TimelineWatch(std::shared_ptr<Session> session) noexcept : session_(std::move(session)) {}
  TimelineWatch(const TimelineWatch&) = delete;
  TimelineWatch& operator=(const TimelineWatch&) = delete;
  ~TimelineWatch() { stop(); }

  // From here on both fail the timeline, and the end of the Runtime closes it. Throws Error.
  void start(Timeline& timeline, const Agent& gpu);
  // Before the timeline is released.
  void stop() noexcept;

  // False after the end of the Runtime: no signal, queue or memory is left.
  bool usable() const noexcept { return !session_ || session_->alive(); }

 private:
  std::shared_ptr<Session> session_;
  Owned end_;
  uint64_t faults_ = 0;
  bool listens_ = false;
};

}  // namespace uptempo::detail
