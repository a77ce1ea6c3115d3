#include "engine/stream/launcher.hpp"

#include <fmt/format.h>

#include <utility>

#include "engine/runtime/counters.hpp"
#include "engine/runtime/error.hpp"
#include "engine/stream/streams_state.hpp"

namespace uptempo::detail {

LauncherCore::LauncherCore(Streams& streams, std::shared_ptr<const KernelInfo> kernel,
                           const LauncherOptions& options)
    : streams_(streams.state_),
      kernel_(std::move(kernel)),
      blocks_(streams_->agent(), *kernel_, options.blocks, streams_->place().is_on_device()),
      scratch_(kernel_->arguments.explicit_count()) {
  if (options.blocks != 0) return;
  throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "Launcher",
               .asked = fmt::format("no block for the arguments of kernel '{}'", kernel_->name),
               .found = "at least one is needed",
               .remedy = "raise LauncherOptions::blocks, or turn skip_arguments off"});
}

LauncherCore::~LauncherCore() {
  LauncherMemory& memory = at_end_.front();
  memory.blocks.emplace(std::move(blocks_));
  memory.buffers = scratch_.take_memory();
  memory.buffers_used_in = scratch_.standing.queue;
  memory.buffers_used_until = scratch_.standing.position.epoch;
  if (!memory.is_over()) streams_->give_back_later(std::move(at_end_));
}

void LauncherCore::begin_arrays(Stream& stream) {
  if (stream.streams_ != streams_) refuse_stream();
  if (at_error_.empty()) at_error_.emplace_back();
  const Standing& last = scratch_.standing;
  if (last.queue != nullptr && scratch_.stream != stream.number_ &&
      !QueueUse{last.queue, last.position.epoch}.is_over())
    stream.follow(last);
  scratch_.stream = stream.number_;
}

void LauncherCore::abandon_arrays(const Stream& stream) noexcept {
  if (!scratch_.empty()) {
    LauncherMemory& memory = at_error_.front();
    memory.buffers = scratch_.take_memory();
    memory.buffers_used_in = stream.queue_;
    memory.buffers_used_until = UINT64_MAX;
    streams_->give_back_later(std::move(at_error_));
  }
  scratch_.standing = {};
}

const Agent& LauncherCore::agent() const noexcept { return *streams_->agent(); }

void LauncherCore::count_hit() const noexcept {
  CounterBlock& counters = counters_of_this_thread();
  count(counters.argument_hits, 1);
  count(counters.argument_bytes_saved, kernel_->arguments.size_bytes());
}

void LauncherCore::count_miss() const noexcept { count(&CounterBlock::argument_misses); }

void LauncherCore::refuse_stream() const {
  throw Error(
      {.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
       .call = "Launcher::launch",
       .asked = fmt::format("kernel '{}' on a stream", kernel_->name),
       .found = "the stream belongs to other Streams than the Launcher",
       .remedy = "create the Launcher with the Streams of the streams that it is used with"});
}

}  // namespace uptempo::detail
