// HardwareQueue: the use of an HSA queue that the engine creates. Private to engine/dispatch and
// engine/stream.
//
// HSA queues are kept: the destructor leaves an idle one to the next HardwareQueue of the same
// agent, ring size and access, and the end of the Runtime destroys all. Reason: ROCr 6.1 and newer
// keep pointers to destroyed queues (GpuAgent::aql_queues_), and read them when the driver refuses
// memory of the GPU, to this library or to HIP. ROCm/rocm-systems pull request 6631 of June 2026
// mends that, but no version number tells whether a ROCr has it.
//
// A new use goes on at the indices of the last one. Profiling is enabled, the priority is normal
// and the mask of compute units is that of the new queue, whatever the last use has set.
//
// An HSA queue that ROCr has reported an error for, or that stop() was called for, has no other
// use. It runs nothing more, and keeps its ring and scratch until the Runtime ends.
//
// Thread safety: one owner; different HardwareQueues are independent. The Runtime may end on any
// thread.
// Lifetime: the destructor waits for a running call of the error function, which is not called
// later. In the child of a fork it does nothing.
// Cost: the reuse of a queue takes one call of the driver, or two if its mask has changed.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "engine/runtime/agent.hpp"
#include "engine/runtime/ring_access.hpp"
#include "engine/runtime/session.hpp"

namespace uptempo::detail {

// Lets the device store the times of packets into their signals. One thread at a time, because ROCr
// changes a word of the queue without atomics (amd_aql_queue.cpp, SetProfiling). Throws Error.
void enable_profiling(hsa_queue_t* queue);

class HardwareQueue {
 public:
  using OnError = void (*)(hsa_status_t status, hsa_queue_t* queue, void* data);

  HardwareQueue() = default;
  // Uses an HSA queue of `packets` packets, at least 256, or of the agent's maximum. ROCr calls
  // `on_error` with `data` on a thread of its own. Throws Error.
  HardwareQueue(const Agent& agent, uint32_t packets, RingAccessMode access, OnError on_error,
                void* data);
  HardwareQueue(HardwareQueue&& other) noexcept = default;
  HardwareQueue& operator=(HardwareQueue&& other) noexcept {
    reset();
    session_ = std::move(other.session_);
    kept_ = std::move(other.kept_);
    return *this;
  }
  ~HardwareQueue() { reset(); }

  // Null: none. After the end of the Runtime, the queue no longer exists.
  hsa_queue_t* handle() const noexcept;
  // How its ring is accessed, and why. Requires a queue.
  const RingAccessChoice& access() const noexcept;
  // False after the end of the Runtime, and without a queue.
  bool alive() const noexcept { return session_ && session_->alive(); }

  // Stops the processor. Call before the destructor unless all packets are complete.
  void stop() noexcept;
  void reset() noexcept;

 private:
  struct Kept;  // an HSA queue, in use or idle
  struct All;   // of the process

  std::shared_ptr<Session> session_;  // null: no queue
  std::shared_ptr<Kept> kept_;
};

}  // namespace uptempo::detail
