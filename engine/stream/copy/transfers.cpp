#include "engine/stream/copy/transfers.hpp"

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <kernels/transfer.hpp>
#include <thread>
#include <utility>

#include "engine/memory/access.hpp"
#include "engine/runtime/error.hpp"
#include "engine/stream/copy/host_duties.hpp"
#include "engine/stream/event/detail/pending_host_duties.hpp"

namespace uptempo::detail {
namespace {

TransferKernels load(const Agent& gpu) {
  const Program program(gpu, builtin_kernels::transfer());
  return {
      .copy_bytes = program.kernel<uint8_t*, const uint8_t*, uint64_t>("copy_bytes"),
      .copy_rows = program.kernel<uint8_t*, const uint8_t*, uint64_t, uint64_t, uint64_t, uint64_t>(
          "copy_rows"),
      .fill_bytes = program.kernel<uint8_t*, uint64_t, uint64_t, uint64_t>("fill_bytes"),
      .fill_rows =
          program.kernel<uint8_t*, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t>("fill_rows"),
  };
}

volatile uint32_t* hdp_flush_of(const Agent& gpu) {
  // hsa_ext_amd.h extends the enumeration of hsa.h beyond its range.
  constexpr int attribute = HSA_AMD_AGENT_INFO_HDP_FLUSH;
  hsa_amd_hdp_flush_t hdp{};
  check(hsa_agent_get_info(gpu.handle(), std::bit_cast<hsa_agent_info_t>(attribute), &hdp),
        "hsa_agent_get_info", "the register that flushes the host data path");
  return hdp.HDP_MEM_FLUSH_CNTL;
}

Transfers::Parts parts_of(const Agent& gpu) {
  return {.make_lane =
              [gpu](CopyDirection, const CopyLaneOptions& options) {
                return std::make_unique<CopyLane>(gpu, options);
              },
          .load_kernels = [gpu] { return load(gpu); },
          .make_staging =
              [gpu](size_t size_bytes, size_t piece_bytes) {
                return std::make_shared<Staging>(gpu, size_bytes, piece_bytes);
              },
          .compute_units = gpu.properties().compute_units,
          .hdp_flush = hdp_flush_of(gpu)};
}

// Bytes that a work-item copies at a time, and the workgroup size.
constexpr size_t kUnitBytes = 16;
constexpr uint32_t kWorkgroup = 256;

const char* name_of(CopyDirection direction) noexcept {
  switch (direction) {
    case CopyDirection::to_device:
      return "from host to device";
    case CopyDirection::to_host:
      return "from device to host";
    case CopyDirection::between_devices:
      break;
  }
  return "between devices";
}

}  // namespace

Transfers::Transfers(const Agent& gpu, const CopyLimits& limits, const CopyLaneOptions& of_lanes,
                     Hooks hooks)
    : agent_(gpu),
      host_(find_pool(gpu, MemoryKind::pinned).owner),
      limits_(limits),
      of_lanes_(of_lanes),
      hooks_(std::move(hooks)),
      parts_(parts_of(gpu)),
      // Staging memory ends with the Runtime, so run all completed duties before.
      session_end_(Session::current(), Session::Kind::listener, reinterpret_cast<uint64_t>(this),
                   [](uint64_t handle) noexcept {
                     HostDuties::of_process().finish();
                     HostDuties::of_process().drop(reinterpret_cast<const Transfers*>(handle));
                   }) {}

Transfers::Transfers(Parts parts, const CopyLimits& limits, const CopyLaneOptions& of_lanes,
                     Hooks hooks)
    : limits_(limits), of_lanes_(of_lanes), hooks_(std::move(hooks)), parts_(std::move(parts)) {}

Transfers::~Transfers() {
  session_end_.forget();
  HostDuties::of_process().finish();
  HostDuties::of_process().drop(this);
}

CopyLane& Transfers::lane(CopyDirection direction) {
  const auto place = static_cast<size_t>(direction);
  // Acquire: a thread that sees the lane sees it constructed.
  if (CopyLane* const made = lanes_made_[place].load(std::memory_order_acquire)) return *made;
  const std::lock_guard lock(mutex_);
  if (lanes_[place] == nullptr) {
    CopyLaneOptions options = of_lanes_;
    options.name = name_of(direction);
    lanes_[place] = parts_.make_lane(direction, options);
    lanes_[place]->on_shortage(hooks_.on_shortage);
    lanes_made_[place].store(lanes_[place].get(), std::memory_order_release);
  }
  return *lanes_[place];
}

void Transfers::for_each_lane(const std::function<void(CopyLane&)>& f) {
  for (const auto& made : lanes_made_)
    if (CopyLane* const lane = made.load(std::memory_order_acquire)) f(*lane);
}

bool Transfers::has_kernels() {
  std::call_once(kernels_once_, [this] {
    try {
      kernels_.emplace(parts_.load_kernels());
    } catch (const Error& error) {
      no_kernels_.emplace(error);
    }
  });
  return kernels_.has_value();
}

const TransferKernels& Transfers::kernels() {
  if (!has_kernels()) throw *no_kernels_;
  return *kernels_;
}

Grid Transfers::grid(size_t bytes) const noexcept {
  const auto items = static_cast<uint32_t>(
      std::clamp<size_t>((bytes + kUnitBytes - 1) / kUnitBytes, 1, most_items()));
  return Grid{items}.by(std::min(items, kWorkgroup));
}

Grid Transfers::grid(size_t width_bytes, size_t height) const noexcept {
  const auto x = static_cast<uint32_t>(
      std::clamp<size_t>((width_bytes + kUnitBytes - 1) / kUnitBytes, 1, kWorkgroup));
  const auto y =
      static_cast<uint32_t>(std::clamp<size_t>(height, 1, std::max<size_t>(most_items() / x, 1)));
  return Grid{x, y}.by(x, std::clamp(kWorkgroup / x, 1u, y));
}

// Write-combining buffers are emptied first. A read over the bus returns only after all earlier
// stores have arrived.
void Transfers::flush_host_stores(const std::byte* last) const noexcept {
  if (parts_.hdp_flush != nullptr) {
    _mm_sfence();
    *parts_.hdp_flush = 1;
    static_cast<void>(*parts_.hdp_flush);
  } else {
    _mm_mfence();  // orders the load, too
    static_cast<void>(*static_cast<const volatile std::byte*>(last));
  }
}

Staging& Transfers::staging() {
  std::call_once(staging_once_, [this] {
    staging_ = parts_.make_staging(limits_.staging_bytes, limits_.piece_bytes);
  });
  return *staging_;
}

Staging::Chunk Transfers::take_staging(size_t bytes) {
  Staging& all = staging();
  if (auto chunk = all.try_take(bytes)) return std::move(*chunk);
  const Deadline deadline = Deadline::after(of_lanes_.patience);
  for (;;) {
    finish_host_duties();
    if (auto chunk = all.try_take(bytes)) return std::move(*chunk);
    if (deadline.passed()) {
      throw Error(
          {.status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
           .call = "Stream::copy",
           .asked = fmt::format("{} bytes of staging memory for a copy of pageable memory", bytes),
           .found = fmt::format("{} pieces of {} bytes, all in use by unfinished copies",
                                all.pieces(), all.piece_bytes()),
           .remedy = "synchronize, create the Streams with a larger CopyLimits::staging_bytes, or "
                     "copy from pinned memory"});
    }
    hooks_.close_epochs();
    const std::optional<TimelinePoint> point = all.unfinished();
    const bool waits = point && point->value <= point->timeline->last_begun() &&
                       point->timeline->wait(point->value, {}, deadline) != WaitResult::failed;
    // Nothing to wait for: another thread is about to start its copy, or the copy was lost.
    if (!waits) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void Transfers::await_users(const std::byte* data, size_t bytes, HostDuties::Uses uses) {
  std::optional<Deadline> deadline;
  while (const std::optional<TimelinePoint> point =
             HostDuties::of_process().user_of(data, bytes, uses)) {
    if (!deadline) deadline = Deadline::after(of_lanes_.patience);
    hooks_.close_epochs();
    const WaitResult result = point->value <= point->timeline->last_begun()
                                  ? point->timeline->wait(point->value, {}, *deadline)
                                  : WaitResult::timed_out;
    if (result == WaitResult::failed || deadline->passed()) {
      throw Error({.status = HSA_STATUS_ERROR,
                   .call = "Stream::copy",
                   .asked = fmt::format("a copy of {} bytes of pageable memory at {}", bytes,
                                        fmt::ptr(data)),
                   .found = result == WaitResult::failed
                                ? "an earlier copy that uses this memory has failed"
                                : "an earlier copy that uses this memory does not complete",
                   .remedy = "synchronize with the stream of the earlier copy first"});
    }
    finish_host_duties();
  }
}

void Transfers::require_reach(hsa_agent_t peer) {
  if (!agent_) return;
  const std::lock_guard lock(mutex_);
  const auto same = [&](hsa_agent_t known) { return known.handle == peer.handle; };
  if (std::ranges::any_of(reached_, same)) return;
  const Agent owner(peer);
  if (!can_reach(*agent_, owner)) {
    throw Error({.status = HSA_STATUS_ERROR_INVALID_AGENT,
                 .call = "Stream::copy",
                 .asked = fmt::format("a copy between {} (node {}) and its peer {} (node {})",
                                      agent_->name(), agent_->properties().node, owner.name(),
                                      owner.properties().node),
                 .found = "this agent cannot access the peer's memory",
                 .remedy = "copy through host memory"});
  }
  reached_.push_back(peer);
}

}  // namespace uptempo::detail
