// Transfers: the copy engines, kernels and staging memory for the copies of an agent's streams,
// each created on first use. Private to engine/stream and its tests; tests can create one without
// ROCr.
//
// Thread safety: every function may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include <uptempo/memory/buffer.hpp>
#include <uptempo/runtime/agent.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/session.hpp>
#include <uptempo/stream/copy/copy_engines.hpp>
#include <uptempo/stream/copy/copy_lane.hpp>
#include <uptempo/stream/copy/copy_memory.hpp>
#include <uptempo/stream/copy/retired.hpp>
#include <uptempo/stream/copy/staging.hpp>
#include <uptempo/stream/copy/transfer_kernels.hpp>

namespace uptempo::detail {

// The direction that a copy counts for.
constexpr CopyDirection direction_of(CopyPlace to, CopyPlace from) noexcept {
  if (is_host(to)) return CopyDirection::to_host;
  if (is_host(from)) return CopyDirection::to_device;
  const bool with_peer = to == CopyPlace::peer || from == CopyPlace::peer;
  return with_peer ? CopyDirection::between_devices : CopyDirection::within_device;
}

// The direction whose engines copy. ROCr runs a copy between the host and a peer on the peer
// (copy_of()). So its engines are not those of this agent's host link, and the runtime chooses.
constexpr CopyDirection engine_direction_of(CopyPlace to, CopyPlace from) noexcept {
  const bool with_peer = to == CopyPlace::peer || from == CopyPlace::peer;
  return with_peer ? CopyDirection::between_devices : direction_of(to, from);
}

class Transfers {
 public:
  static constexpr size_t kMostLanes = kCopyDirections + kMostEngines;
  struct Parts {
    // The lane of an engine, or of a direction where the runtime chooses the engine.
    std::function<std::unique_ptr<CopyLane>(std::optional<uint32_t> engine, const CopyLaneOptions&)>
        make_lane{};
    EngineSets engines{};
    std::function<TransferKernels()> load_kernels{};
    uint32_t compute_units = 1;
    // Register that flushes the host data path; null: no host data path to flush.
    volatile uint32_t* hdp_flush = nullptr;
    bool coherent_link = false;  // AgentProperties::xgmi_to_host: nothing to flush
  };
  // Ensures that completion of all work in hardware queues can be observed.
  using CloseEpochs = std::function<void()>;

  // The parts by ROCr.
  static Parts parts_of(const Agent& gpu, bool choose_engines);
  // Without an agent, the parts do without ROCr, too.
  Transfers(const std::optional<Agent>& gpu, Parts parts, const CopyLimits& limits,
            const CopyLaneOptions& of_lanes, CloseEpochs close_epochs);
  // Requires that all copies are complete or lost.
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  const CopyLimits& limits() const noexcept { return limits_; }
  // False after the end of the Runtime.
  bool usable() const noexcept { return !agent_ || listener_.alive(); }
  // Chooses the lane of the next copy of a stream, which waits for `waits` (copy_engines.hpp).
  // Throws Error.
  CopyLane& lane_for(CopyDirection direction, std::span<const Event> waits);
  // How copies are made, and by which engines so far.
  std::string describe();
  void for_each_lane(const std::function<void(CopyLane&)>& f);
  // Throws Error if no code object matches the agent; has_kernels() checks it in advance.
  const TransferKernels& kernels();
  bool has_kernels();
  TransferGrids grids() const noexcept { return TransferGrids(parts_.compute_units); }

  // Blocks until device memory holds what the calling thread has stored there over the bus. `last`
  // is the last byte stored.
  void flush_host_stores(const std::byte* last) const noexcept;

  // Takes a chunk of the shared staging memory. Waits, without a lock, if none is free; throws
  // Error if none becomes free in time.
  Staging::Chunk take_staging(size_t bytes);
  Staging& staging();
  // Allocates staging memory for one copy.
  std::shared_ptr<Staging> make_staging(size_t bytes) const {
    return std::make_shared<Staging>(agent(), bytes, bytes);
  }
  // Blocks until no unfinished copy uses that memory in this way. Throws Error on timeout.
  void await_users(const std::byte* data, size_t bytes, RetiredList::Use use);

  const Agent* agent() const noexcept { return agent_ ? &*agent_ : nullptr; }
  // True if the memory is not the agent's own: a peer's, or pinned for a peer.
  bool is_foreign(const CopyRange& range) const noexcept {
    return agent_ && range.agent.handle != 0 && range.agent.handle != agent_->handle().handle;
  }
  // For foreign memory. Throws Error, which names both agents, if the agent may not access it.
  // `asked`: what needs the access.
  void require_access(const CopyRange& range, const std::string& asked) const {
    if (!has_access(*agent_, range.data)) refuse_access(range, asked);
  }
  // Returns the copy with the agents to name to ROCr. ROCr runs it on the source's agent if that is
  // a GPU, else on the target's (runtime.cpp, Runtime::CopyMemory, from 5.2 to 6.4). It does not
  // check whether that agent may access the other side. If it may not, the result names this agent
  // for memory of peers, and ROCr copies with a kernel on this agent.
  CopyLane::Copy copy_of(const CopyRange& to, const CopyRange& from, size_t bytes) const;

 private:
  [[noreturn]] void refuse_access(const CopyRange& range, const std::string& asked) const;
  // Carries out the entries that are due, and drops the others.
  void end_retired() noexcept;
  // The lane of a direction, or of engine `number - kCopyDirections`. Creates it on first use.
  // Throws Error.
  CopyLane& lane(size_t number);
  // Null before its first use. Acquire: a thread that sees the lane sees it constructed.
  CopyLane* made_lane(size_t number) const noexcept {
    return lanes_made_[number].load(std::memory_order_acquire);
  }

  const std::optional<Agent> agent_;
  const hsa_agent_t host_;
  const CopyLimits limits_;
  const CopyLaneOptions of_lanes_;
  const CloseEpochs close_epochs_;
  Parts parts_;
  std::mutex mutex_;  // protects what is created on demand
  std::array<std::unique_ptr<CopyLane>, kMostLanes> lanes_;
  std::array<std::atomic<CopyLane*>, kMostLanes> lanes_made_{};
  std::once_flag kernels_once_, staging_once_;
  std::optional<TransferKernels> kernels_;
  std::optional<Error> no_kernels_;
  std::optional<Staging> staging_;
  SessionListener listener_;  // last: it uses the others
};

}  // namespace uptempo::detail
