// What the Queues of a SharedQueue have in common: the HSA queue, the ring in which they meet, and its errors. Private to engine/dispatch and its tests.
//
// Thread safety: every function from any thread. Only ring() is used by submissions; the others take a lock.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "aql/shared_ring.hpp"
#include "engine/completion/timeline.hpp"
#include "engine/runtime/agent.hpp"
#include "engine/runtime/session.hpp"

namespace uptempo::detail {

// An HSA queue of `packets` packets, or of as many as the agent allows; `on_error` is called with `data` on a thread of ROCr until it is given back.
// Throws Error.
Owned make_hsa_queue(const Agent& agent, uint32_t packets,
                     void (*on_error)(hsa_status_t status, hsa_queue_t* queue, void* data), void* data);
inline hsa_queue_t* hsa_queue(const Owned& owned) noexcept {
  return reinterpret_cast<hsa_queue_t*>(owned.handle());
}
// In words, what an error callback was called with.
std::string stopped_with(hsa_status_t status);

class SharedHsaQueue {
 public:
  SharedHsaQueue(const Agent& agent, uint32_t packets);
  // Over a queue that someone else destroys.
  explicit SharedHsaQueue(hsa_queue_t* queue) : ring_(std::make_unique<aql::SharedRing>(queue)) {}
  SharedHsaQueue(const SharedHsaQueue&) = delete;
  SharedHsaQueue& operator=(const SharedHsaQueue&) = delete;

  aql::SharedRing& ring() noexcept { return *ring_; }
  // False once the session of the HSA queue has ended, and that queue with it.
  bool alive() const noexcept { return queue_.alive(); }

  // From now until leave() returns the timeline fails with the queue; at once if that has failed.
  void join(Timeline& timeline);
  void leave(Timeline& timeline) noexcept;
  void fail(hsa_status_t status, std::string text) noexcept;

  // ROCr changes a word of the queue without atomics (amd_aql_queue.cpp, SetProfiling), so one thread at a time. Throws Error.
  void enable_profiling();

 private:
  std::mutex mutex_;
  std::vector<Timeline*> timelines_;
  Failure failure_;
  bool profiling_ = false;
  std::unique_ptr<aql::SharedRing> ring_;
  Owned queue_;  // last: its error callback uses the others
};

}  // namespace uptempo::detail
