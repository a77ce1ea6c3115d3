// The process-wide completion thread. Notifiers (notifier.hpp) and coroutines (awaitable.hpp) add
// an Awaited; the thread calls its on_finished when the publication has completed or failed.
// Private to engine/completion.
//
// One thread serves all queues. Completion is monotonic within a queue, so the thread sleeps for
// the lowest awaited publication of each queue. At each wake-up it handles every publication that
// has finished meanwhile.
//
// Sleep: the thread sleeps in hsa_amd_signal_wait_any, on those publications' signals and on one
// control signal for new requests. While it sleeps, it is the leader of those publications
// (timeline.hpp), because ROCr counts it as a waiter, and the second waiter of a signal spins.
// If another thread already leads, that thread wakes the completion thread when it leaves. If one
// of the signals has no event, no KFD events are left, or there is no Runtime, the thread polls
// with growing pauses of at most 4 ms.
//
// Where that function writes past its heap block (wait_any_overflows()), the thread sleeps on a
// condition variable, and a handler of each signal (hsa_amd_signal_async_handler) wakes it. Older
// ROCr does not sleep so: its event thread counts as a waiter of the signal until the handler runs,
// and a blocked wait for the same signal would spin. From ROCr 6.0 with KFD 1.14 on, several
// waiters sleep. A handler cannot be removed; one that runs late wakes the thread once too often.
//
// The driver's wait for events (AMDKFD_IOC_WAIT_EVENTS) would save the 200 us of ROCr's polling,
// but for a host store, ROCr raises a signal's event only if it knows of a waiter
// (interrupt_signal.h:208), and profilers that intercept queues complete signals from the host.
//
// Thread safety: every function may be called from any thread, also from on_finished. No lock is
// held during on_finished.
// Lifetime: the thread starts with the first awaited publication. It ends with the Runtime, after
// all awaited publications have been reported as failed by the end of the Runtime, and at static
// destruction. It restarts when there is work again.
// Cost: per wake-up, ROCr's wait polls for 200 us (signal.cpp:302 at 5.2.3). Four wake-ups per
// second check for errors that have no notification.
#pragma once

#include <hsa/hsa.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <uptempo/completion/awaited_list.hpp>
#include <uptempo/completion/detail/awaited.hpp>
#include <uptempo/completion/timeline.hpp>
#include <uptempo/runtime/session.hpp>
#include <uptempo/runtime/signal.hpp>

namespace uptempo::detail {

class CompletionThread {
 public:
  static CompletionThread& of_process();

  // `item` names a begun publication. It must not move until on_finished is called or remove()
  // returns true. Throws std::system_error if the thread cannot be started.
  void add(Awaited& item);
  // Returns true if on_finished will not be called. Returns false if it is being called, has been
  // called, or the item was never added.
  bool remove(Awaited& item) noexcept;
  // Requests another check of the awaited publications, for example after a failure.
  void look_again() noexcept;
  bool running() const noexcept;
  // How it sleeps, or would if it were started, and why. HSA must be initialised.
  std::string describe_sleep() const;

 private:
  CompletionThread() = default;
  static void end_with_session(uint64_t unused) noexcept;

  void attach_to_session();
  void start();
  void stop(bool for_good) noexcept;
  void wake() noexcept;
  void stop_watching(Timeline& timeline) noexcept;
  void run() noexcept;
  bool collect(std::unique_lock<std::mutex>& lock);
  void serve(std::unique_lock<std::mutex>& lock);
  void sleep(std::unique_lock<std::mutex>& lock);
  enum class Sleep : uint8_t { none, on_signals, on_handlers, in_pauses };
  Sleep prepare_to_sleep();
  void wait_for_signals();
  bool register_handlers();
  static bool on_signal(hsa_signal_value_t value, void* unused) noexcept;
  void end_sleeps() noexcept;

  struct Sleeper {
    Timeline* timeline;
    uint64_t value;
    hsa_signal_t signal;
  };

  std::mutex life_;  // orders starts and stops; locked before mutex_
  std::thread thread_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Timeline*> watched_;  // timelines with awaited publications
  AwaitedList ready_;
  bool running_ = false;
  bool stopping_ = false;
  bool woken_ = false;
  bool in_rocr_ = false;  // asleep in ROCr; the control signal wakes it
  std::shared_ptr<Session> session_;
  Sleep means_ = Sleep::in_pauses;  // what this session's ROCr allows
  std::optional<Signal> control_;   // only on_signals
  std::chrono::nanoseconds pause_{0};

  // Used only by the completion thread.
  std::vector<Timeline*> looked_at_;
  std::vector<bool> failed_;
  std::vector<Sleeper> sleepers_;
  std::vector<Sleeper> handled_;  // unfinished publications whose signals have a handler
  std::vector<hsa_signal_t> signals_;
  std::vector<hsa_signal_condition_t> conditions_;
  std::vector<hsa_signal_value_t> values_;
};

}  // namespace uptempo::detail
