#include "engine/stream/copy/transfers.hpp"

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <utility>

#include "aql/store_fence.hpp"
#include "engine/memory/access.hpp"
#include "engine/memory/kernarg_memory.hpp"
#include "engine/memory/kernarg_placement.hpp"
#include "engine/memory/pool.hpp"
#include "engine/runtime/error.hpp"
#include "engine/stream/copy/retired.hpp"
#include "engine/stream/copy/rocr_engines.hpp"
#include "engine/stream/event/detail/retired_counts.hpp"

namespace uptempo::detail {
namespace {

CopyLane::Start start_by_rocr(std::optional<uint32_t> engine) {
  if (!engine) {
    return [](const CopyLane::Copy& copy, std::span<const hsa_signal_t> after, hsa_signal_t done) {
      return hsa_amd_memory_async_copy(copy.to, copy.to_agent, copy.from, copy.from_agent,
                                       copy.bytes, static_cast<uint32_t>(after.size()),
                                       after.empty() ? nullptr : after.data(), done);
    };
  }
  return [engine = *engine](const CopyLane::Copy& copy, std::span<const hsa_signal_t> after,
                            hsa_signal_t done) {
    return RocrEngines::get().copy(copy.to, copy.to_agent, copy.from, copy.from_agent, copy.bytes,
                                   after, done, engine);
  };
}

Transfers::Parts parts_of(const Agent& gpu) {
  const RocrEngines& rocr = RocrEngines::get();
  const hsa_agent_t host = find_pool(gpu, MemoryKind::pinned).owner;
  // Only for directions between the host and the GPU: ROCr refuses to answer for one agent.
  const auto mask = [own = gpu.handle(), host](CopyDirection direction, auto&& ask) -> uint32_t {
    if (direction == CopyDirection::to_device) return ask(own, host);
    return direction == CopyDirection::to_host ? ask(host, own) : 0;
  };
  return {.make_lane =
              [gpu](std::optional<uint32_t> engine, const CopyLaneOptions& options) {
                return std::make_unique<CopyLane>(gpu, start_by_rocr(engine), options);
              },
          .engines = rocr.offer(gpu),
          .idle_engines =
              [&rocr, mask](CopyDirection direction) {
                return mask(direction,
                            [&](hsa_agent_t to, hsa_agent_t from) { return rocr.idle(to, from); });
              },
          .preferred_engines =
              [&rocr, mask](CopyDirection direction) {
                return mask(direction, [&](hsa_agent_t to, hsa_agent_t from) {
                  return rocr.preferred(to, from);
                });
              },
          .load_kernels = [gpu] { return load_transfer_kernels(gpu); },
          .make_staging =
              [gpu](size_t size_bytes, size_t piece_bytes) {
                return std::make_shared<Staging>(gpu, size_bytes, piece_bytes);
              },
          .compute_units = gpu.properties().compute_units,
          .hdp_flush = hdp_flush_register(gpu),
          .coherent_link = gpu.properties().xgmi_to_host};
}

}  // namespace

Transfers::Transfers(const Agent& gpu, const CopyLimits& limits, const CopyEngines& engines,
                     const CopyLaneOptions& of_lanes, CloseEpochs close_epochs)
    : agent_(gpu),
      host_(find_pool(gpu, MemoryKind::pinned).owner),
      limits_(limits),
      wanted_engines_(engines),
      of_lanes_(of_lanes),
      close_epochs_(std::move(close_epochs)),
      parts_(parts_of(gpu)),
      // Staging memory ends with the Runtime, so carry out what is due before.
      listener_(Session::current(), {.at_end = [this] { end_retired(); }}) {
  check_masks(wanted_engines_, parts_.engines);
}

Transfers::Transfers(Parts parts, const CopyLimits& limits, const CopyEngines& engines,
                     const CopyLaneOptions& of_lanes, CloseEpochs close_epochs)
    : limits_(limits),
      wanted_engines_(engines),
      of_lanes_(of_lanes),
      close_epochs_(std::move(close_epochs)),
      parts_(std::move(parts)) {
  check_masks(wanted_engines_, parts_.engines);
}

Transfers::~Transfers() {
  listener_.stop();
  end_retired();
}

void Transfers::end_retired() noexcept {
  RetiredList::of_process().release();
  RetiredList::of_process().drop(this);
}

CopyLane& Transfers::lane(LaneNumber number) {
  // Acquire: a thread that sees the lane sees it constructed.
  if (CopyLane* const made = lanes_made_[number].load(std::memory_order_acquire)) return *made;
  const std::lock_guard lock(mutex_);
  if (lanes_[number] == nullptr) {
    CopyLaneOptions options = of_lanes_;
    std::optional<uint32_t> engine;
    if (number < kCopyDirections) {
      options.name =
          fmt::format("{} by the runtime's engine", name_of(static_cast<CopyDirection>(number)));
    } else {
      engine = static_cast<uint32_t>(number - kCopyDirections);
      options.name = fmt::format("by engine {}", *engine);
    }
    lanes_[number] = parts_.make_lane(engine, options);
    lanes_[number]->end_loans_by(close_epochs_);
    lanes_made_[number].store(lanes_[number].get(), std::memory_order_release);
  }
  return *lanes_[number];
}

EngineSet Transfers::engines_now(CopyDirection direction) const {
  const auto ask = [&](const auto& function) { return function ? function(direction) : 0u; };
  const bool is_offered = parts_.engines.none.empty();
  return choose_engines(direction, wanted_engines_, parts_.engines,
                        is_offered ? ask(parts_.idle_engines) : 0,
                        is_offered ? ask(parts_.preferred_engines) : 0);
}

const EngineSet* Transfers::engines_of(CopyDirection direction) {
  const auto place = static_cast<size_t>(direction);
  if (const EngineSet* const made = engine_sets_made_[place].load(std::memory_order_acquire))
    return made;
  const std::lock_guard lock(mutex_);
  if (engine_sets_[place] == nullptr) {
    auto set = std::make_unique<const EngineSet>(engines_now(direction));
    if (set->ask_again) return nullptr;
    engine_sets_[place] = std::move(set);
    engine_sets_made_[place].store(engine_sets_[place].get(), std::memory_order_release);
  }
  return engine_sets_[place].get();
}

CopyLane& Transfers::lane_for(CopyDirection direction, std::span<const Event> waits) {
  const EngineSet* const set = engines_of(direction);
  if (set == nullptr || set->mask == 0) return lane(lane_of(direction));
  LaneNumber best = lane_of_engine(set->favourite);
  uint32_t least = UINT32_MAX;
  const auto consider = [&](uint32_t engine) {
    CopyLane* const made = lanes_made_[lane_of_engine(engine)].load(std::memory_order_acquire);
    const uint32_t unfinished = made == nullptr ? 0 : made->unfinished();
    if (unfinished >= least) return;
    least = unfinished;
    best = lane_of_engine(engine);
  };
  consider(set->favourite);
  for (uint32_t left = set->mask; left != 0; left &= left - 1) {
    const auto engine = static_cast<uint32_t>(std::countr_zero(left));
    CopyLane* const made = lanes_made_[lane_of_engine(engine)].load(std::memory_order_acquire);
    if (made != nullptr) {
      // The copies of a failed engine end with its Error, instead of moving to another one.
      if (made->failed()) return *made;
      for (const Event& event : waits)
        if (made->is_unfinished(event)) return *made;
    }
    consider(engine);
  }
  return lane(best);
}

std::string Transfers::engine_reason(CopyDirection direction) {
  const EngineSet* const made =
      engine_sets_made_[static_cast<size_t>(direction)].load(std::memory_order_acquire);
  return made != nullptr ? made->reason : engines_now(direction).reason;
}

std::string Transfers::engine_reasons() {
  std::string text;
  for (size_t place = 0; place < kCopyDirections; ++place) {
    const auto direction = static_cast<CopyDirection>(place);
    text += fmt::format("copies {}: {}\n", name_of(direction), engine_reason(direction));
  }
  return text;
}

std::vector<CopyEngineUse> Transfers::engine_uses() {
  std::vector<CopyEngineUse> uses;
  for (LaneNumber number = 0; number < lanes_made_.size(); ++number) {
    CopyLane* const made = lanes_made_[number].load(std::memory_order_acquire);
    if (made == nullptr) continue;
    CopyEngineUse use{.name = made->name(),
                      .copies = made->copies(),
                      .bytes = made->bytes(),
                      .unfinished = made->unfinished()};
    if (number >= kCopyDirections) use.engine = static_cast<uint32_t>(number - kCopyDirections);
    uses.push_back(std::move(use));
  }
  return uses;
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

// Without a register: a read over the bus returns only after all earlier stores have arrived.
void Transfers::flush_host_stores(const std::byte* last) const noexcept {
  if (parts_.coherent_link) {
    aql::store_fence();
  } else if (parts_.hdp_flush != nullptr) {
    flush_hdp(parts_.hdp_flush);
  } else {
    aql::store_load_fence();
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
  for (Waiter waiter(of_lanes_.patience);;) {
    release_retired();
    if (auto chunk = all.try_take(bytes)) return std::move(*chunk);
    close_epochs_();
    // If there is nothing to wait for, another thread is about to start its copy, or it was lost.
    if (waiter.wait(all.unfinished().value_or(Completion()))) continue;
    throw Error(
        {.status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
         .call = "Stream::copy",
         .asked = fmt::format("{} bytes of staging memory for a copy of pageable memory", bytes),
         .found = fmt::format("{} pieces of {} bytes, all in use by unfinished copies",
                              all.pieces(), all.piece_bytes()),
         .remedy = "synchronize, create the Streams with a larger CopyLimits::staging_bytes, or "
                   "copy from pinned memory"});
  }
}

void Transfers::await_users(const std::byte* data, size_t bytes, RetiredList::Use use) {
  Waiter waiter(of_lanes_.patience);
  while (const std::optional<Completion> last =
             RetiredList::of_process().user_of(data, bytes, use)) {
    close_epochs_();
    const bool has_failed = timeline_of(*last)->failed() && !is_done(*last);
    if (has_failed || !waiter.wait(*last)) {
      throw Error({.status = HSA_STATUS_ERROR,
                   .call = "Stream::copy",
                   .asked = fmt::format("a copy of {} bytes of pageable memory at {}", bytes,
                                        fmt::ptr(data)),
                   .found = has_failed ? "an earlier copy that uses this memory has failed"
                                       : "an earlier copy that uses this memory does not complete",
                   .remedy = "synchronize with the stream of the earlier copy first"});
    }
    release_retired();
  }
}

bool Transfers::reaches(const CopyEnd& end) const { return has_access(*agent_, end.data); }

void Transfers::refuse_reach(const CopyEnd& end, const std::string& asked) const {
  refuse_access(*agent_, end.data, end.agent, "Stream::copy", asked);
}

CopyLane::Agents Transfers::agents_of(const CopyEnd& to, const CopyEnd& from) const {
  const hsa_agent_t own = agent_ ? agent_->handle() : hsa_agent_t{0};
  const auto agent_of = [&](const CopyEnd& end) {
    if (end.place == CopyPlace::peer) return end.agent;
    return is_host(end.place) ? host_ : own;
  };
  // Host agent on one side only: otherwise ROCr copies within the host in its own thread.
  if (is_host(to.place) && is_host(from.place)) return {.to = host_, .from = own};
  CopyLane::Agents agents{.to = agent_of(to), .from = agent_of(from)};
  const bool by_source = !is_host(from.place);
  const hsa_agent_t runs = by_source ? agents.from : agents.to;
  if (runs.handle == own.handle || has_access(runs, by_source ? to.data : from.data)) return agents;
  if (to.place == CopyPlace::peer) agents.to = own;
  if (from.place == CopyPlace::peer) agents.from = own;
  return agents;
}

}  // namespace uptempo::detail
