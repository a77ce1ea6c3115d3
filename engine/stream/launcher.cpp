#include "engine/stream/launcher.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/runtime/counters.hpp"
#include "engine/runtime/error.hpp"
#include "engine/stream/streams_state.hpp"

namespace uptempo::detail {

LauncherCore::LauncherCore(Streams& streams, std::shared_ptr<const KernelInfo> kernel,
                           const LauncherOptions& options)
    : streams_(streams.state_),
      kernel_(std::move(kernel)),
      blocks_(streams_->agent(), *kernel_, options.blocks) {
  if (options.blocks != 0) return;
  throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "Launcher",
               .asked = fmt::format("no block for the arguments of kernel '{}'", kernel_->name),
               .found = "at least one is needed",
               .remedy = "correct the LauncherOptions, or turn skip_arguments off"});
}

LauncherCore::~LauncherCore() {
  std::vector<QueueUse> uses = blocks_.uses();
  if (std::ranges::all_of(uses, &QueueUse::is_over)) return;
  streams_->give_back_later(blocks_.take_memory(), std::move(uses));
}

void LauncherCore::count_hit() const noexcept {
  CounterBlock& counters = counters_of_this_thread();
  count(counters.argument_hits, 1);
  count(counters.argument_bytes_saved, kernel_->arguments.size_bytes());
}

void LauncherCore::count_miss() const noexcept { count(&CounterBlock::argument_misses); }

void LauncherCore::refuse_stream() const {
  throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "Launcher::launch",
               .asked = fmt::format("kernel '{}' on a stream", kernel_->name),
               .found = "the stream belongs to other Streams than the Launcher",
               .remedy = "make the Launcher with the Streams of the streams that it is used with"});
}

}  // namespace uptempo::detail
