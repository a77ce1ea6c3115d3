#include "kfd/events.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "kfd/machine/log.hpp"

namespace uptempo::vgpu::kfd {
namespace {

constexpr uint32_t kMaxSignalEvents = KFD_SIGNAL_EVENT_LIMIT - 1;  // the driver reserves slot 0
constexpr uint32_t kInfinite = std::numeric_limits<uint32_t>::max();

bool is_signal(uint32_t type) {
  return type == KFD_IOC_EVENT_SIGNAL || type == KFD_IOC_EVENT_DEBUG_EVENT;
}

const char* access_name(Access access) {
  switch (access) {
    case Access::read:
      return "read";
    case Access::write:
      return "write";
    case Access::atomic:
      return "atomic";
    case Access::execute:
      return "instruction fetch";
  }
  return "access";
}

// Unique in the process. Never reused, unlike a thread's system identifier.
uint64_t this_thread() noexcept {
  static std::atomic<uint64_t> last{0};
  thread_local const uint64_t number = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

}  // namespace

bool Events::Takers::join(uint64_t thread) noexcept {
  const auto end = threads_.begin() + static_cast<ptrdiff_t>(count_);
  if (count_ == 0 || count_ == threads_.size() || std::find(threads_.begin(), end, thread) != end)
    return false;
  threads_[count_++] = thread;
  return true;
}

int Events::create(uint32_t type, bool auto_reset, uint32_t& event_id) {
  const std::lock_guard lock(mutex_);
  if (is_signal(type)) {
    if (signal_count_ == kMaxSignalEvents) {
      note("CREATE_EVENT: all 4095 signal events are in use");
      return -ENOSPC;
    }
    while (events_.contains(next_signal_id_))
      next_signal_id_ = next_signal_id_ % kMaxSignalEvents + 1;
    event_id = next_signal_id_;
  } else {
    while (events_.contains(next_other_id_)) ++next_other_id_;
    event_id = next_other_id_;
  }
  Event& event = events_[event_id];  // may throw, so the count follows
  if (is_signal(type)) {
    next_signal_id_ = next_signal_id_ % kMaxSignalEvents + 1;
    ++signal_count_;
  } else {
    next_other_id_ = next_other_id_ == std::numeric_limits<int32_t>::max() ? KFD_SIGNAL_EVENT_LIMIT
                                                                           : next_other_id_ + 1;
  }
  event.type = type;
  event.auto_reset = auto_reset;
  return 0;
}

int Events::destroy(uint32_t event_id) {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event_id);
  if (found == events_.end()) return -EINVAL;
  for (Waiter* waiter : found->second.waiters) {
    waiter->event = nullptr;
    waiter->wake->notify_all();
  }
  if (is_signal(found->second.type)) --signal_count_;
  events_.erase(found);
  return 0;
}

Events::Held Events::held() const {
  const std::lock_guard lock(mutex_);
  return {.signal = signal_count_, .other = events_.size() - signal_count_};
}

int Events::set(uint32_t event_id) {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event_id);
  if (found == events_.end() || found->second.type != KFD_IOC_EVENT_SIGNAL) return -EINVAL;
  set_locked(found->second);
  return 0;
}

int Events::reset(uint32_t event_id) {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event_id);
  if (found == events_.end() || found->second.type != KFD_IOC_EVENT_SIGNAL) return -EINVAL;
  found->second.signaled = false;
  found->second.takers.clear();
  return 0;
}

void Events::set_locked(Event& event) {
  event.takers.clear();
  event.signaled = !event.auto_reset || event.waiters.empty();
  if (++event.age == 0) event.age = 2;  // 0 is reserved, 1 is "never set"
  for (Waiter* waiter : event.waiters) {
    waiter->activated = true;
    waiter->wake->notify_all();
  }
}

int Events::wait(EventData* events, uint32_t count, bool all, uint32_t timeout_ms,
                 uint32_t& result) {
  if (count > kMaxWaitedEvents) return -ENOMEM;
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  std::condition_variable wake;
  std::vector<Waiter> waiters(count);

  std::unique_lock lock(mutex_);
  for (uint32_t i = 0; i < count; ++i)
    if (!events_.contains(events[i].event_id)) return -EINVAL;
  for (uint32_t i = 0; i < count; ++i) {
    Event& event = events_.find(events[i].event_id)->second;
    Waiter& waiter = waiters[i];
    waiter.event = &event;
    waiter.wake = &wake;
    waiter.activated = event.signaled;
    if (event.signaled && event.auto_reset) {
      event.signaled = false;
      event.takers.take(this_thread());
    }
    const uint64_t last_age = events[i].signal_event_data.last_event_age;
    if (compares_ages_ && event.type == KFD_IOC_EVENT_SIGNAL && last_age != 0) {
      waiter.returns_age = true;
      if (event.age != last_age) waiter.activated = true;
    } else if (!waiter.activated) {
      waiter.activated = event.takers.join(this_thread());
    }
    event.waiters.push_back(&waiter);
  }

  const auto condition = [&]() -> uint32_t {
    uint32_t activated = 0;
    for (const Waiter& waiter : waiters) {
      if (waiter.event == nullptr) return KFD_IOC_WAIT_RESULT_FAIL;
      if (!waiter.activated) continue;
      if (!all) return KFD_IOC_WAIT_RESULT_COMPLETE;
      ++activated;
    }
    return activated == count ? KFD_IOC_WAIT_RESULT_COMPLETE : KFD_IOC_WAIT_RESULT_TIMEOUT;
  };
  for (result = condition(); result == KFD_IOC_WAIT_RESULT_TIMEOUT; result = condition()) {
    if (timeout_ms == kInfinite) {
      wake.wait(lock);
    } else if (wake.wait_until(lock, deadline) == std::cv_status::timeout) {
      result = condition();
      break;
    }
  }

  for (uint32_t i = 0; i < count; ++i) {
    Waiter& waiter = waiters[i];
    if (waiter.event == nullptr) continue;
    waiter.event->waiters.remove(&waiter);
    // Only a complete wait returns the ages it saw. A waiter that timed out keeps comparing with
    // the age it knew.
    if (!waiter.activated || result != KFD_IOC_WAIT_RESULT_COMPLETE) continue;
    if (waiter.event->type == KFD_IOC_EVENT_MEMORY) {
      events[i].memory_exception_data = waiter.event->exception;
    } else if (waiter.event->type == KFD_IOC_EVENT_HW_EXCEPTION) {
      events[i].hw_exception_data = waiter.event->hardware_exception;
    } else if (waiter.returns_age) {
      events[i].signal_event_data.last_event_age = waiter.event->age;
    }
  }
  return result == KFD_IOC_WAIT_RESULT_FAIL ? -EIO : 0;
}

void Events::raise(uint32_t event_id) {
  const std::lock_guard lock(mutex_);
  // Ignores unknown ids, as the driver's interrupt handler does, since the program may have
  // destroyed the event.
  const auto found = events_.find(event_id);
  if (found != events_.end()) set_locked(found->second);
}

void Events::memory_fault(const MemoryFault& fault, uint32_t gpu_id, std::string_view gpu_name) {
  const bool read_only = !fault.poison && fault.present &&
                         (fault.access == Access::write || fault.access == Access::atomic);
  char text[160];
  std::snprintf(text, sizeof text, " memory fault: %s at address 0x%llx, %s; ",
                access_name(fault.access), static_cast<unsigned long long>(fault.address),
                fault.poison     ? "uncorrectable ECC error"
                : !fault.present ? "page not present"
                                 : (read_only ? "page is read-only" : "page is not executable"));
  report(std::string(gpu_name) + text + fault.where);

  const std::lock_guard lock(mutex_);
  for (auto& [id, event] : events_) {
    if (event.type != KFD_IOC_EVENT_MEMORY) continue;
    event.exception = {};
    event.exception.failure.NotPresent = fault.present ? 0 : 1;
    if (fault.poison) {
      event.exception.ErrorType = KFD_MEM_ERR_POISON_CONSUMED;
      event.exception.failure.imprecise = 1;
    }
    event.exception.failure.ReadOnly = read_only ? 1 : 0;
    event.exception.failure.NoExecute = fault.present && fault.access == Access::execute ? 1 : 0;
    event.exception.va = fault.address & ~uint64_t{0xfff};  // the hardware reports pages
    event.exception.gpu_id = gpu_id;
    set_locked(event);
  }
  if (fault.poison) hardware_exception_locked(gpu_id, KFD_HW_EXCEPTION_ECC);
}

void Events::gpu_reset(uint32_t gpu_id) {
  const std::lock_guard lock(mutex_);
  hardware_exception_locked(gpu_id, KFD_HW_EXCEPTION_GPU_HANG);
}

void Events::hardware_exception_locked(uint32_t gpu_id, uint32_t cause) {
  for (auto& [id, event] : events_) {
    if (event.type != KFD_IOC_EVENT_HW_EXCEPTION) continue;
    event.hardware_exception = {.reset_type = KFD_HW_EXCEPTION_WHOLE_GPU_RESET,
                                .reset_cause = cause,
                                .memory_lost = 1,
                                .gpu_id = gpu_id};
    set_locked(event);
  }
}

}  // namespace uptempo::vgpu::kfd
