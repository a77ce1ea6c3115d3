#include "engine/dispatch/batch_submitter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/dispatch/batch_queue.hpp"
#include "engine/dispatch/pools/kernarg_pool.hpp"
#include "engine/runtime/error.hpp"
#include "engine/runtime/memory_model.hpp"

namespace uptempo {
namespace {

[[noreturn]] void refuse_empty(const char* call, const char* asked) {
  throw Error({.status = HSA_STATUS_ERROR_INVALID_SIGNAL,
               .call = call,
               .asked = asked,
               .found = "an empty Signal: it was moved from, or left to the Runtime",
               .remedy = "pass the Signal that it was moved to, or a new one"});
}

}  // namespace

BatchSubmitter::BatchSubmitter(Queue& queue, const BatchOptions& options)
    : BatchSubmitter(queue.state("BatchSubmitter"), options) {}

BatchSubmitter::BatchSubmitter(detail::BatchQueue& state, const BatchOptions& options)
    : patience_(options.patience),
      publication_(options.fences, false, state.agent()),
      shapes_(state.facts(), publication_.plain_flags(), &publication_.holds_slots) {
  publication_.kernargs_go_stale_in_l2 =
      kernargs_go_stale_in_l2(state.agent(), state.place().is_on_device());
  publication_.timing = options.timing;
  publication_.chunking = options.chunking;
  (void)detail::BatchQueue::ended();  // here, where it may throw
  attachment_.publication = &publication_;
  state.join(attachment_);
}

BatchSubmitter::~BatchSubmitter() {
  attachment_.state->drop(publication_);
  detail::BatchQueue::leave(attachment_);
}

void BatchSubmitter::clear() noexcept { attachment_.state->drop(publication_); }

const detail::DispatchShape& BatchSubmitter::prepare(std::shared_ptr<const KernelInfo> kernel,
                                                     const Grid& grid) {
  require_not_ended();
  const detail::DispatchShape& shape = shapes_.of(*kernel, grid);
  for (const PreparedShape& prepared : prepared_)
    if (prepared.shape.key == shape.key) return prepared.shape;
  return prepared_.emplace_back(PreparedShape{std::move(kernel), shape}).shape;
}

detail::DispatchSlots BatchSubmitter::take_slots(uint32_t count, uint32_t block_bytes) {
  detail::DispatchSlots slots{.packets = nullptr, .blocks = nullptr, .count = 1};
  count = static_cast<uint32_t>(std::min<size_t>(count, publication_.packets.room()));
  KernargCursor& kernargs = publication_.kernargs;
  if (block_bytes == 0) {
    slots.count = count;
  } else if (kernargs.fits(block_bytes)) {
    // A division takes longer than the rest of this function.
    const bool all_fit = kernargs.fits(uint64_t{count} * block_bytes);
    slots.count = all_fit ? count : static_cast<uint32_t>(kernargs.room() / block_bytes);
    slots.blocks = kernargs.take(block_bytes, slots.count);
  } else {
    slots.blocks = wait_for_block(block_bytes);
  }
  slots.packets = &publication_.packets.add(slots.count);
  return slots;
}

std::byte* BatchSubmitter::wait_for_block(uint32_t block_bytes) {
  return attachment_.state->take_kernargs(publication_.kernargs, block_bytes,
                                          Deadline::after(patience_));
}

std::byte* BatchSubmitter::try_take_block(uint32_t block_bytes) noexcept {
  return attachment_.state->try_take_kernargs(publication_.kernargs, block_bytes);
}

void BatchSubmitter::make_more_room() { attachment_.state->make_room(publication_); }

void BatchSubmitter::lend(const KernelInfo& kernel, std::span<std::byte> block) {
  // implicit arguments are stored in 8-byte words
  const size_t needed = kernel.arguments.block_bytes();
  if (block.size() >= needed &&
      reinterpret_cast<uintptr_t>(block.data()) % KernargPool::kBlockAlignment == 0)
    return attachment_.state->lend(block.first(needed), publication_);
  throw Error(
      {.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
       .call = fmt::format("dispatch of '{}'", kernel.name),
       .asked =
           fmt::format("a kernarg block of {} bytes at {}", block.size(), fmt::ptr(block.data())),
       .found = fmt::format("the kernel needs {} bytes, and blocks are aligned to 64", needed),
       .remedy = "pass a larger or better aligned block"});
}

void BatchSubmitter::raw(const aql::Packet64& packet) {
  if (aql::packet_type(packet.header()) == aql::PacketType::invalid) {
    throw Error({.status = HSA_STATUS_ERROR_INVALID_PACKET_FORMAT,
                 .call = "BatchSubmitter::raw",
                 .asked = fmt::format("a packet with header 0x{:04x}", packet.header()),
                 .found = "its type is INVALID: the packet processor would wait for it forever",
                 .remedy = "give the packet its final header"});
  }
  make_room();
  publication_.put(packet);
}

void BatchSubmitter::wait(const Signal& signal) {
  require_not_ended();
  if (signal.handle().handle == 0) refuse_empty("BatchSubmitter::wait", "a wait for a signal");
  // A barrier packet acquires after its wait (HSA Platform System Architecture 1.2, 2.9). Fences
  // are agent-wide, so this acquire serves every later packet.
  publication_.loans.push_back(signal.lend());
  try {
    raw(aql::to_packet(aql::BarrierAnd{.flags = {.barrier = aql::Barrier::on,
                                                 .acquire = aql::FenceScope::system,
                                                 .release = aql::FenceScope::none},
                                       .dependencies = {signal.handle()}}));
  } catch (...) {
    publication_.loans.pop_back();
    throw;
  }
}

void BatchSubmitter::require_not_ended() const {
  if (publication_.ended != detail::Ending::none) detail::BatchQueue::refuse_ended(publication_);
}

void BatchSubmitter::complete_with(const Signal& signal) {
  require_not_ended();
  if (signal.handle().handle == 0)
    refuse_empty("BatchSubmitter::complete_with", "the completion signal of a batch");
  if (publication_.published != 0)
    attachment_.state->refuse_more(publication_, "another completion signal");
  publication_.loans.push_back(signal.lend());
  publication_.own_signal = signal.handle();
}

Completion BatchSubmitter::submit(CallSite site) {
  publication_.site = site;
  // Common case: there is room at once, and the clock is not read.
  // strictly less: a packet may be added to complete a finished one
  if (size() < attachment_.state->longest_run()) {
    if (const std::optional<uint64_t> value =
            attachment_.state->submit(publication_, Deadline::now()))
      return {attachment_.state->timeline(), *value};
  }
  return submit(Deadline::after(patience_), site);
}

Completion BatchSubmitter::submit(Deadline deadline, CallSite site) {
  publication_.site = site;
  const std::optional<uint64_t> value = attachment_.state->submit(publication_, deadline);
  if (!value) attachment_.state->throw_last_refusal(publication_);
  return {attachment_.state->timeline(), *value};
}

std::optional<Completion> BatchSubmitter::try_submit(CallSite site) {
  publication_.site = site;
  const std::optional<uint64_t> value = attachment_.state->submit(publication_, Deadline::now());
  if (!value) return {};
  return Completion{attachment_.state->timeline(), *value};
}

std::string BatchSubmitter::explain() { return uptempo::explain(plan()); }

}  // namespace uptempo
