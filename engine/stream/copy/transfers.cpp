#include <uptempo/stream/copy/transfers.hpp>

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <utility>

#include <uptempo/aql/store_fence.hpp>
#include <uptempo/memory/buffer.hpp>
#include <uptempo/memory/kernarg_memory.hpp>
#include <uptempo/memory/kernarg_placement.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/stream/copy/retired.hpp>

namespace uptempo::detail {
namespace {

CopyLane::Start start_by_rocr(std::optional<uint32_t> engine) {
  return
      [engine](const CopyLane::Copy& copy, std::span<const hsa_signal_t> after, hsa_signal_t done) {
        const auto count = static_cast<uint32_t>(after.size());
        const hsa_signal_t* const signals = after.empty() ? nullptr : after.data();
        if (!engine)
          return hsa_amd_memory_async_copy(copy.to, copy.to_agent, copy.from, copy.from_agent,
                                           copy.bytes, count, signals, done);
        // Only copies within an agent look at the last argument.
        return copy_on_engine()(copy.to, copy.to_agent, copy.from, copy.from_agent, copy.bytes,
                                count, signals, done, 1u << *engine, true);
      };
}

}  // namespace

Transfers::Parts Transfers::parts_of(const Agent& gpu, bool choose_engines) {
  const hsa_agent_t host = find_pool(gpu, MemoryKind::pinned).owner;
  return {.make_lane =
              [gpu](std::optional<uint32_t> engine, const CopyLaneOptions& options) {
                return std::make_unique<CopyLane>(gpu, start_by_rocr(engine), options);
              },
          .engines = choose_engines ? engines_of(gpu, host)
                                    : left_to_runtime("StreamsOptions::choose_engines"),
          .load_kernels = [gpu] { return load_transfer_kernels(gpu); },
          .compute_units = gpu.properties().compute_units,
          .hdp_flush = hdp_flush_register(gpu),
          .coherent_link = gpu.properties().xgmi_to_host};
}

Transfers::Transfers(const std::optional<Agent>& gpu, Parts parts, const CopyLimits& limits,
                     const CopyLaneOptions& of_lanes, CloseEpochs close_epochs)
    : agent_(gpu),
      host_(gpu ? find_pool(*gpu, MemoryKind::pinned).owner : hsa_agent_t{0}),
      limits_(limits),
      of_lanes_(of_lanes),
      close_epochs_(std::move(close_epochs)),
      parts_(std::move(parts)) {
  // Staging memory ends with the Runtime, so carry out what is due before.
  if (gpu) listener_.start(Session::current(), {.at_end = [this] { end_retired(); }});
}

Transfers::~Transfers() {
  listener_.stop();
  end_retired();
}

void Transfers::end_retired() noexcept {
  RetiredList::of_process().carry_out(true);
  RetiredList::of_process().drop(this);
}

CopyLane& Transfers::lane(size_t number) {
  if (CopyLane* const made = made_lane(number)) return *made;
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

CopyLane& Transfers::lane_for(CopyDirection direction, std::span<const Event> waits) {
  const EngineSet& set = parts_.engines[static_cast<size_t>(direction)];
  if (set.mask == 0) return lane(static_cast<size_t>(direction));
  size_t best = 0;
  uint32_t least = UINT32_MAX;
  // The favourite first, so that it is chosen among equals.
  for (uint32_t left = set.mask, engine = set.favourite;;) {
    const size_t number = kCopyDirections + engine;
    CopyLane* const made = made_lane(number);
    if (made != nullptr) {
      // The copies of a failed engine end with its Error, instead of moving to another one.
      if (made->failed()) return *made;
      for (const Event& event : waits)
        if (made->is_unfinished(event)) return *made;
    }
    const uint32_t unfinished = made == nullptr ? 0 : made->unfinished();
    if (unfinished < least) {
      least = unfinished;
      best = number;
    }
    left &= ~(1u << engine);
    if (left == 0) return lane(best);
    engine = static_cast<uint32_t>(std::countr_zero(left));
  }
}

void Transfers::for_each_lane(const std::function<void(CopyLane&)>& f) {
  for (size_t number = 0; number < kMostLanes; ++number)
    if (CopyLane* const made = made_lane(number)) f(*made);
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
  std::call_once(staging_once_,
                 [this] { staging_.emplace(agent(), limits_.staging_bytes, limits_.piece_bytes); });
  return *staging_;
}

Staging::Chunk Transfers::take_staging(size_t bytes) {
  Staging& all = staging();
  if (auto chunk = all.try_take(bytes)) return chunk;
  for (Waiter waiter(of_lanes_.patience);;) {
    release_retired();
    if (auto chunk = all.try_take(bytes)) return chunk;
    close_epochs_();
    // If there is nothing to wait for, another thread is about to start its copy, or it was lost.
    if (waiter.wait(all.unfinished().value_or(Completion()))) continue;
    throw Error(
        {.code = ErrorCode::limit,
         .status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
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
      throw Error({.code = has_failed ? ErrorCode::failed : ErrorCode::deadline,
                   .status = HSA_STATUS_ERROR,
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

void Transfers::refuse_access(const CopyRange& range, const std::string& asked) const {
  throw Error(
      {.code = ErrorCode::argument,
       .status = HSA_STATUS_ERROR_INVALID_AGENT,
       .call = "Stream::copy",
       .asked = asked,
       .found = fmt::format("{} may not access the memory of {} at {}", name_and_node(*agent_),
                            name_and_node(range.agent), fmt::ptr(range.data)),
       .remedy = "make the buffer for both agents, or call allow_access() for it; where an "
                 "agent cannot reach the other, copy through host memory"});
}

CopyLane::Copy Transfers::copy_of(const CopyRange& to, const CopyRange& from, size_t bytes) const {
  const hsa_agent_t own = agent_ ? agent_->handle() : hsa_agent_t{0};
  const auto agent_of = [&](const CopyRange& range) {
    if (range.place == CopyPlace::peer) return range.agent;
    return is_host(range.place) ? host_ : own;
  };
  CopyLane::Copy copy{.to = to.data,
                      .to_agent = agent_of(to),
                      .from = from.data,
                      .from_agent = agent_of(from),
                      .bytes = bytes};
  const bool by_source = !is_host(from.place);
  const hsa_agent_t runs = by_source ? copy.from_agent : copy.to_agent;
  if (is_host(to.place) && is_host(from.place)) {
    // Host agent on one side only: otherwise ROCr copies within the host in its own thread.
    copy.from_agent = own;
  } else if (runs.handle != own.handle && !has_access(runs, by_source ? to.data : from.data)) {
    if (to.place == CopyPlace::peer) copy.to_agent = own;
    if (from.place == CopyPlace::peer) copy.from_agent = own;
  }
  return copy;
}

}  // namespace uptempo::detail
