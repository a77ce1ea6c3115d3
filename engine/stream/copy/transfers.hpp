// What copies of an agent's streams go through: copy engines, kernels, staging memory; each made when it is first needed. Private to engine/stream and its tests, which may
// make one without ROCr.
//
// Thread safety: every function from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/program/grid.hpp"
#include "engine/program/program.hpp"
#include "engine/runtime/agent.hpp"
#include "engine/stream/copy/copy_ends.hpp"
#include "engine/stream/copy/copy_lane.hpp"
#include "engine/stream/copy/host_duties.hpp"
#include "engine/stream/copy/staging.hpp"

namespace uptempo::detail {

enum class CopyDirection : uint8_t { to_device, to_host, between_devices };

// kernels/transfer.cl.
struct TransferKernels {
  Kernel<uint8_t*, const uint8_t*, uint64_t> copy_bytes;
  Kernel<uint8_t*, const uint8_t*, uint64_t, uint64_t, uint64_t, uint64_t> copy_rows;
  Kernel<uint8_t*, uint64_t, uint64_t, uint64_t> fill_bytes;
  Kernel<uint8_t*, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t> fill_rows;
};

class Transfers {
 public:
  struct Parts {
    std::function<std::unique_ptr<CopyLane>(CopyDirection, const CopyLaneOptions&)> make_lane{};
    std::function<TransferKernels()> load_kernels{};
    std::function<std::shared_ptr<Staging>(size_t size_bytes, size_t piece_bytes)> make_staging{};
    uint32_t compute_units = 1;
    volatile uint32_t* hdp_flush = nullptr;  // the register for it; null: there is no host data path to flush
  };
  // `ask_when_short`: see StreamQueue. `close_epochs` sees to it that all that is in hardware queues will be found complete.
  struct Hooks {
    std::function<void()> ask_when_short;
    std::function<void()> close_epochs;
  };

  Transfers(const Agent& gpu, const CopyLimits& limits, const CopyLaneOptions& of_lanes, Hooks hooks);
  Transfers(Parts parts, const CopyLimits& limits, const CopyLaneOptions& of_lanes, Hooks hooks);
  // Everything is complete or lost.
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  const CopyLimits& limits() const noexcept { return limits_; }
  // Throws Error.
  CopyLane& lane(CopyDirection direction);
  void for_each_lane(const std::function<void(CopyLane&)>& f);
  // Throws Error where there is no code object for the agent; has_kernels() says whether there is.
  const TransferKernels& kernels();
  bool has_kernels();
  // As many work-items as are of use to a copy or a fill.
  Grid grid(size_t bytes) const noexcept;
  Grid grid(size_t width_bytes, size_t height) const noexcept;

  // Returns when device memory has what the calling thread has stored there, over the bus; `last` is the last byte of it.
  void flush_host_stores(const std::byte* last) const noexcept;

  // A chunk of the staging memory of all streams. Waits for one if need be, without a lock; throws Error when none comes in time.
  Staging::Chunk take_staging(size_t bytes);
  Staging& staging();
  // Staging memory for one copy alone.
  std::shared_ptr<Staging> make_staging(size_t bytes) { return parts_.make_staging(bytes, bytes); }
  // Waits, in the calling thread, until no unfinished copy uses that memory so. Throws Error when that does not come in time.
  void await_users(const std::byte* data, size_t bytes, HostDuties::Uses uses);

  const Agent* agent() const noexcept { return agent_ ? &*agent_ : nullptr; }
  hsa_agent_t host() const noexcept { return host_; }
  // Throws Error that names the agent if its memory is out of reach.
  void require_reach(hsa_agent_t peer);

 private:
  size_t most_items() const noexcept { return size_t{parts_.compute_units} * 2048; }

  std::optional<Agent> agent_;
  hsa_agent_t host_{0};
  const CopyLimits limits_;
  const CopyLaneOptions of_lanes_;
  const Hooks hooks_;
  Parts parts_;
  std::mutex mutex_;  // of what is made on demand
  std::array<std::unique_ptr<CopyLane>, 3> lanes_;
  std::array<std::atomic<CopyLane*>, 3> lanes_made_{};
  std::once_flag kernels_once_, staging_once_;
  std::optional<TransferKernels> kernels_;
  std::optional<Error> no_kernels_;
  std::shared_ptr<Staging> staging_;
  std::vector<hsa_agent_t> reached_;
  Owned session_end_;
};

}  // namespace uptempo::detail
