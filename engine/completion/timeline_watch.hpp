// Fails a timeline when the Runtime ends or its agent has a memory fault. Private to the engine.
// Each owner of a timeline and of the resources its work uses holds a TimelineWatch.
//
// Thread safety: one owner. Session callbacks may run on any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include <uptempo/completion/timeline.hpp>
#include <uptempo/runtime/agent.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo::detail {

class TimelineWatch {
 public:
  // Without ROCr: watches nothing.
  TimelineWatch() = default;
  explicit TimelineWatch(std::shared_ptr<Session> session) noexcept
      : session_(std::move(session)) {}
  TimelineWatch(const TimelineWatch&) = delete;
  TimelineWatch& operator=(const TimelineWatch&) = delete;
  ~TimelineWatch() { stop(); }

  // After this call, a memory fault or the end of the Runtime fails the timeline; the end of the
  // Runtime also closes it. The watch claims a fault while publications are unfinished or
  // `open_packets` (packets that no publication covers yet) is not zero. Throws Error.
  void start(Timeline& timeline, const Agent& gpu,
             const std::atomic<uint32_t>* open_packets = nullptr);
  // Call before releasing the timeline. Gives up unfinished work.
  void stop() noexcept;

  // False after the end of the Runtime: signals, queues and memory no longer exist.
  bool usable() const noexcept { return !session_ || session_->alive(); }

 private:
  bool has_open_packets() const noexcept {
    // Acquire: a thread that loads zero sees the publication that covers the packets.
    return open_packets_ != nullptr && open_packets_->load(std::memory_order_acquire) != 0;
  }

  std::shared_ptr<Session> session_;
  Timeline* timeline_ = nullptr;
  hsa_agent_t agent_{};
  const std::atomic<uint32_t>* open_packets_ = nullptr;
  SessionListener listener_;
};

}  // namespace uptempo::detail
