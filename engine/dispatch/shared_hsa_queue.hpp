// SharedHsaQueue: the common part of all Queues of a SharedQueue: the HSA queue, its ring and its
// errors. Private to engine/dispatch and its tests.
//
// Thread safety: any thread. Submissions use only ring(); the other functions take a lock.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "aql/shared_ring.hpp"
#include "aql/slot_holds.hpp"
#include "engine/completion/timeline.hpp"
#include "engine/runtime/agent.hpp"
#include "engine/runtime/ring_access.hpp"
#include "engine/runtime/session.hpp"

namespace uptempo::detail {

// Lets the device store the times of packets into their signals. One thread at a time, because ROCr
// changes a word of the queue without atomics (amd_aql_queue.cpp, SetProfiling). Throws Error.
void enable_profiling(hsa_queue_t* queue);

// Creates an HSA queue of `packets` packets, at least 256, or of the agent's maximum. ROCr calls
// `on_error` with `data` on a thread of its own until the queue is destroyed. Throws Error.
Owned make_hsa_queue(const Agent& agent, uint32_t packets,
                     void (*on_error)(hsa_status_t status, hsa_queue_t* queue, void* data),
                     void* data);
inline hsa_queue_t* hsa_queue(const Owned& owned) noexcept {
  return reinterpret_cast<hsa_queue_t*>(owned.handle());
}
// Holds of a ring whose owners are Timelines and whose values are theirs (slot_holds.hpp). Throws
// std::bad_alloc.
std::unique_ptr<aql::SlotHolds> make_slot_holds(const hsa_queue_t* queue);
// Describes the status that an error callback received.
std::string stopped_with(hsa_status_t status, const hsa_queue_t* queue);

class SharedHsaQueue {
 public:
  SharedHsaQueue(const Agent& agent, uint32_t packets, AccessWish access);
  // Uses a queue that the caller destroys.
  explicit SharedHsaQueue(hsa_queue_t* queue) : ring_(std::make_unique<aql::SharedRing>(queue)) {}
  SharedHsaQueue(const SharedHsaQueue&) = delete;
  SharedHsaQueue& operator=(const SharedHsaQueue&) = delete;

  aql::SharedRing& ring() noexcept { return *ring_; }
  // Why the ring is accessed as it is.
  const std::string& access_reason() const noexcept { return access_reason_; }
  // Makes the ring's holds unless it has them. Throws std::bad_alloc.
  void make_holds();
  // False after the end of the HSA queue's session, which destroys the queue.
  bool alive() const noexcept { return queue_.alive(); }

  // From join() until leave() returns, the timeline fails with the queue; at once if the queue has
  // failed already.
  void join(Timeline& timeline);
  void leave(Timeline& timeline) noexcept;
  void fail(hsa_status_t status, std::string text) noexcept;

 private:
  std::mutex mutex_;
  std::vector<Timeline*> timelines_;
  Failure failure_;
  std::string access_reason_ = "the queue is not ROCr's";
  std::unique_ptr<aql::SlotHolds> holds_;  // of ring_; null before the first hold
  std::unique_ptr<aql::SharedRing> ring_;
  Owned queue_;  // last: its error callback uses the others
};

}  // namespace uptempo::detail
