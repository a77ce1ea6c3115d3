// KFD events: what a program sleeps on, and how the device wakes it.
//
// Semantics follow kfd_events.c of Linux: setting an event wakes all present waiters; an auto-reset event stays set only when there
// were none. An event's age starts at 1 and grows with each set, so that a waiter which passes the last age it saw does not
// miss a set between two waits (KFD 1.14).
//
// One thing is kinder than Linux. ROCr 5.2.3 passes no ages, and two of its threads wait for one auto-reset event: a queue's destructor, which sets
// the event itself, and the handler of queue errors (amd_aql_queue.cpp:332, runtime.cpp:1047). If the handler is preempted between its look
// at the signal and its wait for longer than the 200 us after which the destructor sleeps, too, the destructor takes the only wake-up and both
// sleep for ever: on two busy cores about once in two thousand queues. So when a thread takes the set state of an auto-reset event by coming to wait,
// each other thread that comes to wait without an age is woken by that set once as well. Whoever sleeps in a loop around a condition, as
// ROCr does everywhere, sees one more look at it.
//
// Identifiers: 1..4095 are signal (and debug) events, each also a slot of the event page; 4096 and above are all other types.
//
// Thread safety: every member may be called from any thread. wait() sleeps on a condition variable; everything else holds
// one short mutex. Returned int: 0 or a negative errno, as the ioctl would answer.
#pragma once

#include <linux/kfd_ioctl.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <unordered_map>

#include "device/interrupts.hpp"

namespace uptempo::vgpu::kfd {

// struct kfd_event_data as of KFD 1.14; older headers lack the signal member of its union.
struct EventData {
  union {
    kfd_hsa_memory_exception_data memory_exception_data;
    kfd_hsa_hw_exception_data hw_exception_data;
    struct {
      uint64_t last_event_age;  // in: the age last seen, 0: do not compare. out: the present age.
    } signal_event_data;
  };
  uint64_t extension;
  uint32_t event_id;
  uint32_t pad;
};
static_assert(sizeof(EventData) == sizeof(kfd_event_data) &&
              offsetof(EventData, event_id) == offsetof(kfd_event_data, event_id));

class Events final : public Interrupts {
 public:
  // kcalloc() of the kernel refuses more than 4 MiB; its struct kfd_event_waiter has 56 bytes.
  static constexpr uint32_t kMaxWaitedEvents = (4u << 20) / 56;

  explicit Events(uint32_t gpu_id) : gpu_id_(gpu_id) {}

  int create(uint32_t type, bool auto_reset,
             uint32_t& event_id);  // -ENOSPC: 4095 signal events exist
  int destroy(uint32_t event_id);  // its waiters end with -EIO
  int set(uint32_t event_id);      // signal events only, as is reset()
  int reset(uint32_t event_id);

  struct Held {
    uint64_t signal = 0, other = 0;
  };
  Held held() const;

  // `timeout_ms`: 0 polls, 0xffffffff waits for ever. Fills `result` with KFD_IOC_WAIT_RESULT_*, and when it is COMPLETE the data of `events`.
  // -ENOMEM: more than kMaxWaitedEvents.
  int wait(EventData* events, uint32_t count, bool all, uint32_t timeout_ms, uint32_t& result);

  // Interrupts, for the device's threads.
  void raise(uint32_t event_id) override;
  void memory_fault(const MemoryFault& fault) override;

 private:
  struct Waiter;
  // Who has been woken by the last set of an auto-reset event, after the first of them took its state.
  class Takers {
   public:
    void clear() noexcept { count_ = 0; }
    // Whether the state has been taken, and not yet by this thread, which is added. No more than there is room for.
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
    std::list<Waiter*> waiters;
    Takers takers;
  };
  struct Waiter {
    Event* event = nullptr;  // nullptr: destroyed while it was waited for
    bool activated = false;
    bool wants_age = false;
    std::condition_variable* wake = nullptr;
  };

  static void set_locked(Event& event);

  const uint32_t gpu_id_;
  mutable std::mutex mutex_;
  std::unordered_map<uint32_t, Event> events_;  // references stay valid while others come and go
  uint32_t signal_count_ = 0;
  uint32_t next_signal_id_ = 1;
  uint32_t next_other_id_ = KFD_SIGNAL_EVENT_LIMIT;
};

}  // namespace uptempo::vgpu::kfd
