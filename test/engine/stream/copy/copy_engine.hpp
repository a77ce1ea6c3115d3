// A copy engine in this process: executes copies one after another on a thread of its own, each
// when all signals that it waits for are zero.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <uptempo/runtime/error.hpp>
#include <uptempo/stream/copy/transfers.hpp>
#include "test/support/queue_double.hpp"

namespace uptempo::test {

class CopyEngine {
 public:
  explicit CopyEngine(bool paused = false) : paused_(paused), thread_([this] { run(); }) {}
  ~CopyEngine() { stop(); }
  // Drops copies that still wait. Call before the signals that they wait for are destroyed.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stops_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  // Throws nothing, as ROCr.
  hsa_status_t start(const detail::CopyLane::Copy& copy, std::span<const hsa_signal_t> after,
                     hsa_signal_t done) noexcept {
    const std::lock_guard lock(mutex_);
    if (refuses_) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    try {
      copies_.push_back({copy, {after.begin(), after.end()}, done});
    } catch (const std::bad_alloc&) {
      return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    }
    changed_.notify_all();
    return HSA_STATUS_SUCCESS;
  }

  void pause() { set(paused_, true); }
  void resume() { set(paused_, false); }
  // The next copies report failure, or are refused.
  void fail() { set(fails_, true); }
  void refuse(bool refuses) { set(refuses_, refuses); }
  uint64_t carried_out() const { return carried_out_; }
  // Copies whose signals are set.
  uint64_t signalled() const { return signalled_; }

  std::unique_ptr<detail::CopyLane> lane(const detail::CopyLaneOptions& options) {
    const std::lock_guard lock(mutex_);
    std::vector<hsa_signal_t> handles;
    for (uint32_t i = 0; i < options.copies; ++i)
      handles.push_back(signals_.emplace_back(0).handle());
    return std::make_unique<detail::CopyLane>(
        [this](const auto& copy, auto after, hsa_signal_t done) {
          return start(copy, after, done);
        },
        handles, options);
  }

  // Lanes over this engine. No kernels.
  detail::Transfers::Parts parts() {
    return {.make_lane = [this](std::optional<uint32_t>,
                                const detail::CopyLaneOptions& options) { return lane(options); },
            .load_kernels = []() -> detail::TransferKernels {
              throw Error({.code = ErrorCode::program,
                           .status = HSA_STATUS_ERROR_INVALID_CODE_OBJECT,
                           .call = "Program",
                           .asked = "kernels",
                           .found = "no code object for a double",
                           .remedy = "none"});
            }};
  }

 private:
  struct Begun {
    detail::CopyLane::Copy copy;
    std::vector<hsa_signal_t> after;
    hsa_signal_t done;
  };
  static std::atomic_ref<int64_t> value(hsa_signal_t signal) {
    return std::atomic_ref(
        const_cast<int64_t&>(reinterpret_cast<amd_signal_t*>(signal.handle)->value));
  }
  void set(bool& what, bool to) {
    const std::lock_guard lock(mutex_);
    what = to;
    changed_.notify_all();
  }
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stops_ || (!paused_ && !copies_.empty()); });
      if (stops_) return;
      const Begun next = copies_.front();
      const bool is_due = std::ranges::all_of(next.after, [](hsa_signal_t signal) {
        return value(signal).load(std::memory_order_acquire) == 0;
      });
      if (!is_due) {  // and the copies after it wait, too
        changed_.wait_for(lock, std::chrono::microseconds(50));
        continue;
      }
      copies_.pop_front();
      const bool fails = fails_;
      lock.unlock();
      if (!fails) std::memcpy(next.copy.to, next.copy.from, next.copy.bytes);
      ++carried_out_;  // before the signal, since a waiter may read the count
      value(next.done).store(fails ? -1 : 0, std::memory_order_release);
      ++signalled_;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Begun> copies_;
  std::deque<SignalDouble> signals_;
  bool paused_, stops_ = false, fails_ = false, refuses_ = false;
  std::atomic<uint64_t> carried_out_{0}, signalled_{0};
  std::thread thread_;
};

}  // namespace uptempo::test
