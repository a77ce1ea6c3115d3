// HardwareQueue: the use of an HSA queue that the engine creates. SharedHsaQueue: the common part
// of all Queues of a SharedQueue. Private to engine/dispatch, engine/stream and their tests.
//
// HSA queues are kept: the destructor leaves an idle one to the next HardwareQueue of the same
// agent, ring size and access, and the end of the Runtime destroys all. Reason: ROCr 6.1 and newer
// keep pointers to destroyed queues (GpuAgent::aql_queues_), and read them when the driver refuses
// memory of the GPU, to this library or to HIP. ROCm/rocm-systems pull request 6631 of June 2026
// mends that, but no version number tells whether a ROCr has it.
//
// A new use goes on at the indices of the last one. Profiling is enabled, the priority is normal
// and the mask of compute units is that of the new queue, whatever the last use has set. Except:
// under ROCr 7.0, which does not tell masks, one that is not announced by note_cu_mask() stays.
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

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <uptempo/aql/shared_ring.hpp>
#include <uptempo/aql/slot_holds.hpp>
#include <uptempo/completion/timeline.hpp>
#include <uptempo/runtime/agent.hpp>
#include <uptempo/runtime/ring_access.hpp>
#include <uptempo/runtime/session.hpp>

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
  // The owner is about to set the mask of compute units.
  void note_cu_mask() noexcept;
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

// Throws Error for no queue and for one with one producer. Queues of ROCr 5.2.3 have the type
// HSA_QUEUE_TYPE_MULTI, whatever their creator asked for.
void require_several_producers(const hsa_queue_t* queue, const char* call);
// Throws the Error of a caller's queue in which packets of other code were found.
[[noreturn]] void refuse_beside_others(const char* call, uint64_t next_index,
                                       uint64_t visible_write_index);

// At its end, also by an exception, the writer or ring continues after packets of other code.
template <class Ring>
struct FollowAtEnd {
  Ring& ring;
  ~FollowAtEnd() { ring.follow(); }
};

// Holds of a ring whose owners are Timelines and whose values are theirs (slot_holds.hpp). Throws
// std::bad_alloc.
std::unique_ptr<aql::SlotHolds> make_slot_holds(const hsa_queue_t* queue);
// Describes the status that an error callback received. Empty if memory is short.
std::string stopped_with(hsa_status_t status, const hsa_queue_t* queue) noexcept;

// The HSA queue of a SharedQueue, its ring and its errors. Any thread; submissions use only ring(),
// the other functions take a lock.
class SharedHsaQueue {
 public:
  SharedHsaQueue(const Agent& agent, uint32_t packets, RingAccessMode access);
  // Uses a queue that the caller destroys, and whose error the caller stores in `error`, if given.
  // Throws Error.
  SharedHsaQueue(const Agent& agent, hsa_queue_t* queue, const std::atomic<hsa_status_t>* error,
                 RingAccessMode access);
  // The same without ROCr.
  explicit SharedHsaQueue(hsa_queue_t* queue, const std::atomic<hsa_status_t>* error = nullptr,
                          aql::RingAccess access = aql::RingAccess::direct)
      : ring_(std::make_unique<aql::SharedRing>(queue, access)),
        is_borrowed_(true),
        foreign_error_(error) {}
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
  // False after the end of the session, which destroys the HSA queue unless it is borrowed.
  bool alive() const noexcept { return session_ ? session_->alive() : queue_.alive(); }
  bool is_borrowed() const noexcept { return is_borrowed_; }
  const std::atomic<hsa_status_t>* foreign_error() const noexcept { return foreign_error_; }
  // SharedQueue::publish_own().
  void publish_own(const std::function<void(uint64_t room)>& publish);

  // From join() until leave() returns, the timeline fails with the queue; at once if the queue has
  // failed already.
  void join(Timeline& timeline);
  void leave(Timeline& timeline) noexcept;
  // A Queue has left work behind that may still execute.
  void lose_work() noexcept { has_lost_work_ = true; }
  void fail(hsa_status_t status, std::string text) noexcept;

 private:
  Failure failure();

  std::mutex mutex_;
  std::vector<Timeline*> timelines_;
  Failure failure_;
  std::string access_reason_ = "the queue is not ROCr's";
  std::unique_ptr<aql::SlotHolds> holds_;  // of ring_; null before the first hold
  std::unique_ptr<aql::SharedRing> ring_;
  std::atomic<bool> has_lost_work_{false};
  const bool is_borrowed_ = false;
  const std::shared_ptr<Session> session_;  // of a borrowed queue
  const std::atomic<hsa_status_t>* const foreign_error_ = nullptr;
  HardwareQueue queue_;  // last: its error callback uses the others
};

}  // namespace uptempo::detail
