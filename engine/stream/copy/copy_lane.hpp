// CopyLane: copies by one copy engine, or in one direction by an engine of the runtime's choice,
// one after the other. Private to engine/stream and its tests.
//
// Order: each copy waits for the one before it, even where the engine executes both in order. So
// its signal covers all earlier copies, and a timeline can track them. A copy also waits for events
// of other queues and lanes; it borrows their signals until it is complete.
//
// Requires: no copy may wait for an action of the host. ROCr writes waits into the engine's ring,
// which executes in order (amd_blit_sdma.cpp, SubmitCommand), so later copies of all lanes on that
// engine would wait, too.
//
// Errors: a copy that reports failure (a negative signal value), a memory fault of the agent, and
// the end of the Runtime fail the lane. Every unfinished and every later copy then ends with that
// Error.
// Thread safety: every function may be called from any thread. A lock is held while ROCr starts a
// copy, never during a wait.
// Lifetime: the destructor waits for copies up to CopyLaneOptions::drain_timeout. Copied memory
// must live until completion.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <uptempo/completion/lent_signal.hpp>
#include <uptempo/completion/timeline_watch.hpp>
#include <uptempo/completion/waiter.hpp>
#include <uptempo/dispatch/pools/signal_pool.hpp>
#include <uptempo/stream/queue/event.hpp>

namespace uptempo::detail {

struct CopyLaneOptions {
  std::string name{};    // for errors: "by engine 0"
  uint32_t copies = 32;  // most unfinished copies at a time
  std::chrono::nanoseconds patience = std::chrono::seconds(30);
  std::chrono::nanoseconds drain_timeout = std::chrono::seconds(5);
};

class CopyLane {
 public:
  struct Copy {
    void* to = nullptr;
    hsa_agent_t to_agent{0};
    const void* from = nullptr;
    hsa_agent_t from_agent{0};
    size_t bytes = 0;
  };
  // Starts a copy that waits until all `after` signals are zero, then decrements `done`.
  using Start = std::function<hsa_status_t(const Copy& copy, std::span<const hsa_signal_t> after,
                                           hsa_signal_t done)>;

  // Creates the signals. Throws Error.
  CopyLane(const Agent& gpu, Start start, const CopyLaneOptions& options);
  // Without ROCr; the caller owns the signals.
  CopyLane(Start start, std::span<const hsa_signal_t> signals, const CopyLaneOptions& options);
  ~CopyLane();
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;

  // The copy begins when the events are complete. Throws Error if ROCr refuses the copy, if no room
  // becomes available in time, or if the lane has failed; then no copy has begun.
  Event copy(const Copy& copy, std::span<const Event> after);
  // Returns an event for all copies begun so far. Empty if none is unfinished.
  Event event_for_all();
  // Counts for any thread. A copy that has begun meanwhile may be missing.
  uint64_t copies() const noexcept { return copies_.load(std::memory_order_relaxed); }
  uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  uint32_t unfinished() noexcept;
  // True for an event of this lane whose copy is unfinished.
  bool is_unfinished(const Event& event) noexcept;
  bool failed() noexcept { return timeline_.failed(); }
  // Call after the last copy. Blocks until all copies are complete, or lost at the deadline, which
  // is also the destructor's.
  void finish(Deadline deadline) noexcept;
  // Sets the function that is called, without the lock, while queues have no signal to lend
  // (stream_queue.hpp). Call before using the lane.
  void end_loans_by(std::function<void()> callback) { end_loans_ = std::move(callback); }

  const std::string& name() const noexcept { return options_.name; }

 private:
  void check_failed();
  bool has_room() noexcept;
  void wait_for_room(std::unique_lock<std::mutex>& lock, Waiter& waiter);
  uint64_t first_unfinished() noexcept;
  void reclaim() noexcept;

  const CopyLaneOptions options_;
  const Start start_;
  SignalPool signals_;
  Timeline& timeline_;
  std::atomic<uint32_t> starting_{0};  // copies given to ROCr that the timeline does not have yet
  TimelineWatch watch_;
  std::function<void()> end_loans_;
  std::atomic<uint64_t> copies_{0}, bytes_{0};  // written under the lock
  std::atomic<uint64_t> seen_done_;             // all copies up to this value are complete
  std::mutex mutex_;
  std::vector<LentSignal> borrowed_;  // for the copy being started
  std::vector<hsa_signal_t> dependencies_;
  std::optional<Deadline> ends_by_;
};

}  // namespace uptempo::detail
