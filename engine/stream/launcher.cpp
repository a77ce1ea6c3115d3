#include "engine/stream/launcher.hpp"

#include <fmt/format.h>

#include <utility>

#include "engine/runtime/counters.hpp"
#include "engine/runtime/error.hpp"
#include "engine/stream/copy/retired.hpp"
#include "engine/stream/streams_state.hpp"

namespace uptempo::detail {

LauncherCore::LauncherCore(Streams& streams, std::shared_ptr<const KernelInfo> kernel,
                           const LauncherOptions& options)
    : streams_(streams.state_),
      kernel_(std::move(kernel)),
      blocks_(streams_->agent(), *kernel_, options.blocks, streams_->place().is_on_device()),
      scratch_(kernel_->arguments.explicit_count()),
      at_end_(RetiredList::of_process().make_place()) {
  if (options.blocks != 0) return;
  throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "Launcher",
               .asked = fmt::format("no block for the arguments of kernel '{}'", kernel_->name),
               .found = "at least one is needed",
               .remedy = "raise LauncherOptions::blocks, or turn skip_arguments off"});
}

LauncherCore::~LauncherCore() {
  Retired& memory = at_end_.front();
  blocks_.add_uses(memory.uses);
  if (scratch_.last_work.queue != nullptr) memory.uses.add(last_use_of_scratch());
  memory.kernargs = blocks_.take_memory();
  memory.buffers = scratch_.take_memory();
  memory.owner = &streams_->transfers();
  RetiredList::of_process().add(std::move(at_end_));
  release_retired();
}

void LauncherCore::launch(Stream& stream, StreamQueue& queue, LaunchReservation&& reserved,
                          ArgumentBlock& block, uint32_t group_segment) {
  aql::Packet64 packet;
  aql::store_behind_gate(packet, reserved.shape->packet, block.block, group_segment);
  if (!block.uses.includes(queue.timeline())) [[unlikely]] {
    blocks_.expect_first_use(block);
    at_end_.front().uses.expect(blocks_.use_entries() + 1);  // one for the scratch memory
  }
  queue.launch(std::move(reserved), stream.position_, packet);
  blocks_.note_use(block, completion_of(queue.timeline(), stream.position_.epoch));
  if (stream.follows_others_) [[unlikely]]
    stream.note_order();
}

Completion LauncherCore::last_use_of_scratch() const noexcept {
  const LastWork& last = scratch_.last_work;
  return completion_of(last.queue->timeline(), last.position.epoch);
}

void LauncherCore::begin_arrays(Stream& stream) {
  if (stream.streams_ != streams_) refuse_stream(stream);
  constexpr size_t kMoreWaits = 64;  // for queues and engines of these Streams
  if (at_error_.empty()) at_error_ = RetiredList::of_process().make_place();
  at_error_.front().uses.expect(stream.waits_.size() + kMoreWaits);
  if (scratch_.last_work.queue != nullptr && scratch_.stream != stream.number_ &&
      !is_done(last_use_of_scratch()))
    stream.follow(scratch_.last_work);
  scratch_.stream = stream.number_;
}

void LauncherCore::abandon_arrays(const Stream& stream) noexcept {
  if (!scratch_.empty()) {
    Retired& memory = at_error_.front();
    // The open epoch covers all packets of the stream. The last copy by an engine is a wait of it.
    if (stream.queue_ != nullptr) {
      Timeline& queue = stream.queue_->timeline();
      memory.uses.add(completion_of(queue, queue.last_begun() + 1));
    }
    for (const Event& event : stream.waits_) memory.uses.add(event.completion());
    memory.buffers = scratch_.take_memory();
    memory.owner = &streams_->transfers();
    RetiredList::of_process().add(std::move(at_error_));
  }
  scratch_.last_work = {};
}

const Agent& LauncherCore::agent() const noexcept { return *streams_->agent(); }

void LauncherCore::count_hit() const noexcept {
  CounterBlock& counters = counters_of_this_thread();
  count(counters.argument_hits, 1);
  count(counters.argument_bytes_saved, kernel_->arguments.size_bytes());
}

void LauncherCore::count_miss() const noexcept { count(&CounterBlock::argument_misses); }

void LauncherCore::refuse_stream(const Stream& stream) const {
  stream.require_here("Launcher::launch");
  throw Error(
      {.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
       .call = "Launcher::launch",
       .asked = fmt::format("kernel '{}' on a stream", kernel_->name),
       .found = "the stream belongs to other Streams than the Launcher",
       .remedy = "create the Launcher with the Streams of the streams that it is used with"});
}

}  // namespace uptempo::detail
