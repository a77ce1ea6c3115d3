// SharedHsaQueue: the common part of all Queues of a SharedQueue: the HSA queue, its ring and its
// errors. Private to engine/dispatch and its tests.
//
// Thread safety: any thread. Submissions use only ring(); the other functions take a lock.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "aql/shared_ring.hpp"
#include "aql/slot_holds.hpp"
#include "engine/completion/timeline.hpp"
#include "engine/dispatch/hardware_queue.hpp"
#include "engine/runtime/agent.hpp"
#include "engine/runtime/ring_access.hpp"

namespace uptempo::detail {

// Holds of a ring whose owners are Timelines and whose values are theirs (slot_holds.hpp). Throws
// std::bad_alloc.
std::unique_ptr<aql::SlotHolds> make_slot_holds(const hsa_queue_t* queue);
// Describes the status that an error callback received. Empty if memory is short.
std::string stopped_with(hsa_status_t status, const hsa_queue_t* queue) noexcept;

class SharedHsaQueue {
 public:
  SharedHsaQueue(const Agent& agent, uint32_t packets, RingAccessMode access);
  // Uses a queue that the caller destroys.
  explicit SharedHsaQueue(hsa_queue_t* queue) : ring_(std::make_unique<aql::SharedRing>(queue)) {}
  ~SharedHsaQueue() {
    if (has_lost_work_) queue_.stop();
  }
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
  // A Queue has left work behind that may still execute.
  void lose_work() noexcept { has_lost_work_ = true; }
  void fail(hsa_status_t status, std::string text) noexcept;

 private:
  std::mutex mutex_;
  std::vector<Timeline*> timelines_;
  Failure failure_;
  std::string access_reason_ = "the queue is not ROCr's";
  std::unique_ptr<aql::SlotHolds> holds_;  // of ring_; null before the first hold
  std::unique_ptr<aql::SharedRing> ring_;
  std::atomic<bool> has_lost_work_{false};
  HardwareQueue queue_;  // last: its error callback uses the others
};

}  // namespace uptempo::detail
