// Copies of one direction by a copy engine, one after the other. Private to engine/stream and its tests.
//
// Each copy waits for the one before it, also where the engine would carry out both in order anyway: so its signal says that all before it are complete, and a
// timeline can tell of them. It waits for the events of other tracks that it comes after, whose signals it borrows until it is itself reclaimed.
//
// Nobody may wait here for what only the host can do: ROCr writes the waits into the engine's ring, which is carried out in order (amd_blit_sdma.cpp,
// SubmitCommand), so later copies of all lanes of that engine would wait, too.
//
// A copy that reports failure (a signal below zero) fails the lane, and so do a memory fault of the agent and the end of the Runtime: every copy that is unfinished then
// ends with that Error, and every later one.
//
// Thread safety: every function from any thread; a lock is held while a copy is handed to ROCr, and never while something is waited for. Lifetime: the destructor waits for
// copies up to CopyLaneOptions::drain; memory until completion.
#pragma once

#include <hsa/hsa.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/completion/timeline_watch.hpp"
#include "engine/stream/event/event.hpp"
#include "engine/stream/queue/signal_source.hpp"

namespace uptempo::detail {

struct CopyLaneOptions {
  std::string name{};    // for errors: "host to device"
  uint32_t copies = 32;  // unfinished at a time
  std::chrono::nanoseconds patience = std::chrono::seconds(30);
  std::chrono::nanoseconds drain = std::chrono::seconds(5);
};

class CopyLane final : public SignalSource {
 public:
  struct Copy {
    void* to = nullptr;
    hsa_agent_t to_agent{0};
    const void* from = nullptr;
    hsa_agent_t from_agent{0};
    size_t bytes = 0;
  };
  // Begins a copy that waits until all of `after` are zero and then decrements `done`.
  using Start =
      std::function<hsa_status_t(const Copy& copy, std::span<const hsa_signal_t> after, hsa_signal_t done)>;

  // By hsa_amd_memory_async_copy. Makes the signals. Throws Error.
  CopyLane(const Agent& gpu, const CopyLaneOptions& options);
  // Without ROCr; the signals are the caller's.
  CopyLane(Start start, std::span<const hsa_signal_t> signals, const CopyLaneOptions& options);
  ~CopyLane();
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;

  // Begins when the events are complete. Throws Error if ROCr refuses it, when room does not come in time, and if the lane has failed; then nothing has begun.
  Event copy(const Copy& copy, std::span<const Event> after);
  // Everything begun so far. Empty where nothing is unfinished.
  Event event_for_all();
  // Nothing more will come. Returns when all is complete or lost, which it is at the deadline.
  void finish(Deadline deadline) noexcept;
  // Called, without the lock, when signals are short. Set before the lane is used.
  void ask_when_short(std::function<void()> ask) { ask_ = std::move(ask); }

  Timeline& source_timeline() noexcept override { return timeline_; }
  std::optional<Borrowed> borrow(uint64_t value) override;
  void give_back_loans() noexcept override;

 private:
  void check_failed();
  bool has_room() noexcept;
  void wait_for_room(std::unique_lock<std::mutex>& lock, Deadline deadline);
  uint64_t first_unfinished() noexcept;
  void reclaim() noexcept;

  const CopyLaneOptions options_;
  const Start start_;
  SignalPool signals_;
  Timeline& timeline_;
  TimelineWatch watch_;
  std::function<void()> ask_;
  std::mutex mutex_;
  std::vector<std::vector<SignalLoan>> loans_;  // of each unfinished copy, by place
  std::vector<Borrowed> borrowed_;              // of the copy that is being begun
  std::vector<hsa_signal_t> dependencies_;
};

}  // namespace uptempo::detail
