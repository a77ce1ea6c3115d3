// StreamsState::describe() and Transfers::describe().
#include <fmt/format.h>

#include <algorithm>

#include "engine/runtime/agent.hpp"
#include "engine/runtime/description.hpp"
#include "engine/runtime/session.hpp"
#include "engine/stream/streams_state.hpp"

namespace uptempo::detail {
namespace {

std::string acquires_of(const StreamsOptions& options, const Agent* agent,
                        const KernargPlace& kernargs) {
  if (options.system_acquires) return "at system scope, as the caller asked";
  const char* const memory = kernargs.is_on_device() ? "device memory" : "fine-grained host memory";
  if (kernargs_go_stale_in_l2(agent, kernargs.is_on_device()))
    return fmt::format("at system scope, because L2 may hold old kernargs in {}", memory);
  return fmt::format(
      "at agent scope, because L2 holds no old kernargs in {}; at system scope after the host or "
      "another agent may have written the data",
      memory);
}

std::string text_of(const KernargPlace& kernargs) {
  return fmt::format("in {} (placement {}: {})", name_of(kernargs.placement),
                     name_of(kernargs.asked), kernargs.reason);
}

}  // namespace

std::string StreamsState::describe() {
  bool usable = true;
  for_each_queue([&](StreamQueue& queue) { usable = usable && queue.usable(); });
  if (!usable)
    Session::refuse_ended("Streams::describe", "the description of streams", "their queues",
                          "make a new Runtime and new Streams");
  Description all(agent_ ? fmt::format("streams of {}", agent_->name()) : "streams");
  struct Queue {
    StreamQueue* queue;
    bool own;
    std::string title;
  };
  std::vector<Queue> queues;
  {
    const std::lock_guard lock(mutex_);
    constexpr const char* kPriorities[] = {"low", "normal", "high"};
    for (const auto& member : queues_)
      queues.push_back(
          {member->queue.get(), member->own,
           fmt::format("{} queue, priority {}, {} streams", member->own ? "own" : "shared",
                       kPriorities[static_cast<size_t>(member->priority)], member->streams)});
  }
  std::ranges::stable_partition(queues, [](const Queue& each) { return !each.own; });
  const auto own = std::ranges::count_if(queues, &Queue::own);
  all.line("shared hardware queues",
           fmt::format("{}, of at most {} for each priority and mask",
                       queues.size() - static_cast<size_t>(own), options_.hardware_queues))
      .line("queues of streams that wait for the host",
            fmt::format("{}, of at most {}", own, options_.own_queues))
      .line("default stream", options_.legacy_default
                                  ? "before and after the work of blocking streams"
                                  : "like any other")
      .line("kernargs", text_of(kernargs_))
      .line("launches acquire", acquires_of(options_, agent(), kernargs_))
      .line("completion signals",
            fmt::format("with markers, and with at least one launch of {} of a queue",
                        epoch_packets(options_.queue, options_.epoch_packets)))
      .part(transfers_.describe());
  for (const Queue& each : queues) {
    Description of_queue(each.title);
    of_queue.line("compute units", each.queue->cu_mask());
    all.part(of_queue.part(each.queue->describe()).text());
  }
  return all.text();
}

std::string Transfers::describe() {
  Description all("copies");
  all.line("by the host", fmt::format("up to {} bytes, where it reaches both ends and the stream "
                                      "has no unfinished work",
                                      limits_.host_bytes))
      .line("by a kernel", fmt::format("up to {} bytes, in 2-D, and where the engine cannot",
                                       limits_.kernel_bytes))
      .line("by a copy engine", "larger ones")
      .line("pageable memory",
            fmt::format("staged up to {} bytes, pinned for the copy above", limits_.stage_bytes))
      .line("host data path", parts_.coherent_link
                                  ? "none: host stores to device memory are coherent over xGMI"
                              : parts_.hdp_flush != nullptr
                                  ? "flushed by a register after host stores to device memory"
                                  : "no flush register");
  for (const CopyDirection direction : {CopyDirection::to_device, CopyDirection::to_host})
    all.line(fmt::format("engines {}", name_of(direction)),
             parts_.engines[static_cast<size_t>(direction)].reason);
  for_each_lane([&](const CopyLane& lane) {
    all.line("copies so far",
             fmt::format("{}: {}, {} bytes", lane.name(), lane.copies(), lane.bytes()));
  });
  return all.text();
}

}  // namespace uptempo::detail
