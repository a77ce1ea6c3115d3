// The drain: the one thread of the process that sleeps for everybody who does not want to sleep himself. Notifiers (notifier.hpp) and
// coroutines (awaitable.hpp) leave an Awaited with it; it is handed back when the publication has completed or failed. Private to engine/dispatch.
//
// One thread for all queues. It sleeps for the lowest awaited publication of each queue, because completion is monotonic within a queue, and
// at each wake-up hands out all that has finished meanwhile. Asleep it costs what ROCr's wait costs: 200 us of polling (signal.cpp:302 at
// 5.2.3) for each wake-up, and four wake-ups a second for errors that nobody announces.
//
// How it sleeps. In hsa_amd_signal_wait_any, over those publications' signals and one signal of its own, which wakes it for what is new. It is the
// leader of those publications while it sleeps (timeline.hpp): for ROCr it is a waiter as any other, and the second one of a signal spins. Where a
// thread leads already, that thread wakes the drain when it leaves. With an event-less signal among them, without KFD events left
// or without a Runtime it polls with growing pauses, at most 4 ms.
//   Not hsa_amd_signal_async_handler: ROCr's thread would be such a waiter too, for each registered signal and until that fires, and a
//   blocked wait of ours for the same signal would spin; a handler cannot be taken back; and users' code does not belong on
//   the thread that reports queue errors.
//   Not the driver's wait for events (AMDKFD_IOC_WAIT_EVENTS), which would spare the 200 us: ROCr raises a signal's event for a store of the host only
//   if it knows of a waiter (interrupt_signal.h:208), and profilers that intercept queues complete signals from the host.
//
// Life. The thread starts when something is first awaited and ends with the Runtime, after everything that was still awaited has been handed
// back with the Runtime's end as its failure, and with static destruction. It starts again when there is something to do again.
//
// Thread safety: every function from any thread, also from on_finished. No lock is held during on_finished.
#pragma once

#include <hsa/hsa.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "engine/completion/awaited.hpp"
#include "engine/completion/timeline.hpp"
#include "engine/runtime/session.hpp"
#include "engine/runtime/signal.hpp"

namespace uptempo::detail {

class CompletionThread {
 public:
  static CompletionThread& of_process();

  // `item` names a publication that was begun; it stays where it is until on_finished is called or remove() has returned true. Throws
  // std::system_error if the thread cannot be started.
  void add(Awaited& item);
  // True: on_finished will not be called. False: it is being called or has been, or the item was never added.
  bool remove(Awaited& item) noexcept;
  // Something has failed or is to be looked at again.
  void look_again() noexcept;
  bool running() const noexcept;

 private:
  CompletionThread() = default;
  static void end_with_session(uint64_t unused) noexcept;

  void attach_to_session();
  void start();
  void stop(bool for_good) noexcept;
  void wake() noexcept;
  void run() noexcept;
  bool collect(std::unique_lock<std::mutex>& lock);
  void serve(std::unique_lock<std::mutex>& lock);
  void sleep(std::unique_lock<std::mutex>& lock);
  enum class Sleep : uint8_t { none, on_signals, in_pauses };
  Sleep prepare_to_sleep();
  void end_lookouts() noexcept;

  struct Lookout {
    Timeline* timeline;
    uint64_t value;
  };

  std::mutex life_;  // orders starts and stops; taken before mutex_
  std::thread thread_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Timeline*> watched_;  // that have awaited publications
  AwaitedList ready_;
  bool running_ = false;
  bool stopping_ = false;
  bool woken_ = false;
  bool in_rocr_ = false;  // asleep, to be woken by the signal
  std::shared_ptr<Session> session_;
  std::optional<Signal> control_;
  std::chrono::nanoseconds pause_{0};

  // The thread's.
  std::vector<Timeline*> looked_at_;
  std::vector<bool> failed_;
  std::vector<Lookout> lookouts_;
  std::vector<hsa_signal_t> signals_;
  std::vector<hsa_signal_condition_t> conditions_;
  std::vector<hsa_signal_value_t> values_;
};

}  // namespace uptempo::detail
