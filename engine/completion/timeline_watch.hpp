// What ends the work of a timeline from outside: the end of the Runtime, and memory faults of its agent. Private to the engine.
//
// Who owns a timeline, and what its work uses, has one of these. Thread safety: one owner; what it listens to comes on any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "engine/completion/timeline.hpp"
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

  // From here on both fail the timeline, and the end of the Runtime closes it. A fault is claimed while publications are unfinished, or `open_packets` is not zero:
  // packets that no publication covers yet. Throws Error.
  void start(Timeline& timeline, const Agent& gpu, const std::atomic<uint32_t>* open_packets = nullptr);
  // Before the timeline is released. What is unfinished then is given up.
  void stop() noexcept;

  // False after the end of the Runtime: no signal, queue or memory is left.
  bool usable() const noexcept { return !session_ || session_->alive(); }

 private:
  bool has_open_packets() const noexcept {
    // Acquire: who finds none finds the publication that covers them.
    return open_packets_ != nullptr && open_packets_->load(std::memory_order_acquire) != 0;
  }

  std::shared_ptr<Session> session_;
  Timeline* timeline_ = nullptr;
  hsa_agent_t agent_{};
  const std::atomic<uint32_t>* open_packets_ = nullptr;
  Owned end_;
  uint64_t faults_ = 0;
  bool listens_ = false;
};

}  // namespace uptempo::detail
