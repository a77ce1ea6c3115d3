// QueueResources::describe().
#include <fmt/format.h>

#include <algorithm>

#include <uptempo/aql/amd_abi.hpp>
#include <uptempo/completion/completion_thread.hpp>
#include <uptempo/dispatch/queue_resources.hpp>
#include <uptempo/memory/buffer.hpp>
#include <uptempo/memory/pool.hpp>
#include <uptempo/runtime/agent.hpp>
#include <uptempo/runtime/description.hpp>
#include <uptempo/runtime/signal.hpp>

namespace uptempo::detail {
namespace {

std::string doorbell_of(const hsa_queue_t* queue) {
  using Kind = aql::detail::SignalKind;
  switch (const Kind kind = aql::detail::signal_kind(queue->doorbell_signal)) {
    case Kind::doorbell:
      return "hardware doorbell";
    case Kind::legacy_doorbell:
      return "hardware doorbell of the legacy kind, which takes another unit";
    case Kind::user:
      return "a signal of kind USER, as of an intercepted queue";
    default:
      return fmt::format("a signal of kind {}", static_cast<int64_t>(kind));
  }
}

std::string publication_of(const aql::AqlQueueWriter& writer, const RingAccessChoice& access) {
  if (access.access == aql::RingAccess::hsa_calls) return "by HSA calls: " + access.reason;
  return fmt::format("indices by {}, doorbell by {}: {}",
                     writer.direct_indices() ? "direct access" : "HSA calls (unknown layout)",
                     writer.direct_doorbell() ? "direct access" : "HSA calls", access.reason);
}

std::string signals_of(const SignalPool& signals) {
  if (signals.interrupts() == 0)
    return fmt::format("{}, without events, so waiting threads poll: {}", signals.event_less(),
                       events_in_use() ? "neither budget nor driver had an event left"
                                       : "HSA_ENABLE_INTERRUPT is 0");
  return fmt::format("{} with events, so waiting threads sleep; {} without, for timing",
                     signals.interrupts(), signals.event_less());
}

// A queue that got some of its signals with events uses only these for completions.
uint32_t publications_of(const QueueOptions& options, const SignalPool& signals) {
  if (signals.interrupts() == 0) return options.publications;
  return std::min(options.publications, signals.interrupts());
}

std::string kernargs_of(const Agent* agent, const KernargPool& pool, const KernargPlace& place) {
  std::string slabs = fmt::format("{} slabs of {} bytes", pool.slabs(), pool.slab_bytes());
  if (agent == nullptr) return slabs;
  const std::string why = fmt::format("placement {}: {}", name_of(place.asked), place.reason);
  if (place.is_on_device() && place.coherent_link)
    return fmt::format("{} in the GPU's memory, which needs no flush ({})", slabs, why);
  if (place.is_on_device())
    return fmt::format("{} in the GPU's memory, {} before the doorbell ({})", slabs,
                       place.hdp_flush != nullptr ? "flushed by a register" : "read back", why);
  const MemoryPool memory = find_pool(*agent, MemoryKind::kernarg);
  return fmt::format("{} in {} of {} ({})", slabs, name_of(MemoryKind::kernarg),
                     host_placement(*agent, memory.owner), why);
}

}  // namespace

std::string QueueResources::describe() const {
  const hsa_queue_t* const queue = handle();
  Description all(fmt::format("queue {}", queue->id));
  all.line("ring", fmt::format("{} packets in {}", ring_size_,
                               writer_->has_device_ring()
                                   ? "device memory, fenced before and after each header"
                                   : "host memory"));
  if (common_ == nullptr)
    all.line("HSA queue", queue_.handle() != nullptr ? "used by this Queue alone" : "borrowed");
  else
    all.line("HSA queue", common_->is_borrowed() ? "that of a SharedQueue, which borrows it"
                                                 : "that of a SharedQueue");
  if (agent_) all.line("agent", fmt::format("{}, ISA {}", agent_->name(), agent_->isa()));
  all.line("producers", writer_->is_shared()
                            ? "threads of this process, which commit in the order of their claims"
                            : "one, with a private cursor")
      .line("doorbell", doorbell_of(queue))
      .line("publication", publication_of(*writer_, access_))
      .line("publications at a time", std::to_string(publications_of(options_, signals_)))
      .line("completion signals", signals_of(signals_))
      .line("kernargs", kernargs_of(agent(), kernargs_, place_));
  if (agent_)
    all.line("signal memory", signal_placement(*agent_))
        .line("fences of " + agent_->name(), uptempo::describe(memory_model(*agent_)));
  return all.line("completion thread", CompletionThread::of_process().describe_sleep()).text();
}

}  // namespace uptempo::detail
