// KFD events: programs wait for them, and the device sets them.
//
// Semantics follow kfd_events.c of Linux. Setting an event wakes all present waiters. An auto-reset
// event stays set only if it has no waiter. An event's age starts at 1 and grows with each set. A
// waiter that passes the last age it saw does not miss a set between two waits (KFD 1.14).
//
// Difference from Linux: more than one waiter may consume one set of an auto-reset event. ROCr
// 5.2.3 passes no ages, and two of its threads wait for one auto-reset event: a queue's destructor,
// which also sets the event, and the handler of queue errors (amd_aql_queue.cpp:332,
// runtime.cpp:1047). The destructor sleeps after 200 us. If the handler is preempted for longer
// between its load of the signal and its wait, the destructor takes the only wake-up and both sleep
// for ever. On two busy cores this happened about once in two thousand queues. Therefore, after a
// thread's wait consumes the set state of an auto-reset event, the same set wakes each other thread
// that then waits without an age, once per thread. A thread that waits in a loop around a
// condition, as ROCr does everywhere, only evaluates its condition once more.
//
// Identifiers: 1..4095 are signal (and debug) events, each with a slot of the event page. 4096 and
// above are all other types.
//
// Thread safety: any thread may call every member. wait() sleeps on a condition variable; all other
// members hold one mutex for a short time.
//
// Errors: a returned int is 0 or the ioctl's negative errno.
#pragma once

#include <linux/kfd_ioctl.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "device/fault.hpp"

namespace uptempo::vgpu::kfd {

// struct kfd_event_data of KFD 1.14. Older headers lack the signal member of its union.
struct EventData {
  union {
    kfd_hsa_memory_exception_data memory_exception_data;
    kfd_hsa_hw_exception_data hw_exception_data;
    struct {
      uint64_t last_event_age;  // in: the age last seen, 0: do not compare; out: the present age
    } signal_event_data;
  };
  uint64_t extension;
  uint32_t event_id;
  uint32_t pad;
};
static_assert(sizeof(EventData) == sizeof(kfd_event_data) &&
              offsetof(EventData, event_id) == offsetof(kfd_event_data, event_id));

class Events {
 public:
  // The kernel's kcalloc() refuses more than 4 MiB; its struct kfd_event_waiter has 56 bytes.
  static constexpr uint32_t kMaxWaitedEvents = (4u << 20) / 56;

  // `compares_ages`: the driver has KFD 1.14.
  explicit Events(bool compares_ages = true) : compares_ages_(compares_ages) {}

  // Returns -ENOSPC if 4095 signal events exist.
  int create(uint32_t type, bool auto_reset, uint32_t& event_id);
  int destroy(uint32_t event_id);  // its waiters return with -EIO
  int set(uint32_t event_id);      // signal events only, as is reset()
  int reset(uint32_t event_id);

  struct Held {
    uint64_t signal = 0, other = 0;
  };
  Held held() const;

  // `timeout_ms`: 0 polls, 0xffffffff waits without limit. Sets `result` to KFD_IOC_WAIT_RESULT_*.
  // If it is COMPLETE, fills the data of `events`. Returns -ENOMEM for more than kMaxWaitedEvents.
  int wait(EventData* events, uint32_t count, bool all, uint32_t timeout_ms, uint32_t& result);

  // Called by the device's threads, see device/interrupts.hpp. `gpu_id` and `gpu_name` are those of
  // the GPU that accessed the memory.
  void raise(uint32_t event_id);
  // An ECC error also sets the events of hardware exceptions (kfd_signal_poison_consumed_event()).
  void memory_fault(const MemoryFault& fault, uint32_t gpu_id, std::string_view gpu_name);
  // Sets the events of hardware exceptions: the GPU hung, was reset and lost its memory
  // (kfd_signal_reset_event()).
  void gpu_reset(uint32_t gpu_id);

 private:
  struct Waiter;
  // Threads that the last set of an auto-reset event has woken since its state was consumed.
  class Takers {
   public:
    void clear() noexcept { count_ = 0; }
    // Adds the thread and returns true if the state has been consumed, but not by this thread, and
    // there is room.
    bool join(uint64_t thread) noexcept;
    void take(uint64_t thread) noexcept {
      threads_[0] = thread;
      count_ = 1;
    }

   private:
    std::array<uint64_t, 8> threads_{};
    size_t count_ = 0;
  };
  struct Event {
    uint32_t type = 0;
    bool auto_reset = false;
    bool signaled = false;
    uint64_t age = 1;
    kfd_hsa_memory_exception_data exception{};
    kfd_hsa_hw_exception_data hardware_exception{};
    std::list<Waiter*> waiters;
    Takers takers;
  };
  struct Waiter {
    Event* event = nullptr;  // nullptr: destroyed during the wait
    bool activated = false;
    bool returns_age = false;
    std::condition_variable* wake = nullptr;
  };

  static void set_locked(Event& event);
  // `cause`: KFD_HW_EXCEPTION_GPU_HANG or KFD_HW_EXCEPTION_ECC.
  void hardware_exception_locked(uint32_t gpu_id, uint32_t cause);

  const bool compares_ages_;
  mutable std::mutex mutex_;
  // references stay valid across insertions and erasures
  std::unordered_map<uint32_t, Event> events_;
  uint32_t signal_count_ = 0;
  uint32_t next_signal_id_ = 1;
  uint32_t next_other_id_ = KFD_SIGNAL_EVENT_LIMIT;
};

}  // namespace uptempo::vgpu::kfd
