#include <uptempo/dispatch/batch_submitter.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <uptempo/dispatch/batch_queue.hpp>
#include <uptempo/dispatch/pools/kernarg_pool.hpp>
#include <uptempo/runtime/agent.hpp>
#include <uptempo/runtime/attempt.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo {
namespace {

[[noreturn]] void refuse_empty(const char* call, const char* asked) {
  throw Error({.code = ErrorCode::argument,
               .status = HSA_STATUS_ERROR_INVALID_SIGNAL,
               .call = call,
               .asked = asked,
               .found = "the null signal, which is the handle of a Signal that was moved from or "
                        "left to the Runtime",
               .remedy = "pass the Signal that it was moved to, or a new one"});
}

std::optional<Completion> submit_to_queue(detail::BatchState& batch, Deadline deadline,
                                          const CallSite& site) {
  detail::BatchQueue& queue = batch.queue();
  batch.publication.site = site;
  const std::optional<uint64_t> value = queue.submit(batch.publication, deadline);
  if (!value) return {};
  return detail::completion_of(queue.timeline(), *value);
}

}  // namespace

namespace detail {

BatchState::BatchState(BatchQueue& queue, const BatchOptions& options)
    : publication(options.fences, false, queue.agent()),
      shapes(queue.facts(), publication.plain_flags(), &publication.holds_slots),
      patience(options.patience) {
  publication.kernargs_go_stale_in_l2 =
      kernargs_go_stale_in_l2(queue.agent(), queue.place().is_on_device());
  publication.timing = options.timing;
  publication.chunking = options.chunking;
  queue.join(publication);
}

const DispatchShape& BatchState::prepare(std::shared_ptr<const KernelInfo> kernel,
                                         const Grid& grid) {
  (void)queue();
  const DispatchShape& shape = shapes.of(*kernel, grid);
  for (const PreparedShape& known : prepared)
    if (known.shape.key == shape.key) return known.shape;
  return prepared.emplace_back(PreparedShape{std::move(kernel), shape}).shape;
}

DispatchSlots BatchState::take_slots(uint32_t count, uint32_t block_bytes) {
  DispatchSlots slots{.packets = nullptr, .blocks = nullptr, .count = 1};
  count = static_cast<uint32_t>(std::min<size_t>(count, publication.packets.room()));
  KernargCursor& kernargs = publication.kernargs;
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
  slots.packets = &publication.packets.add(slots.count);
  return slots;
}

std::byte* BatchState::wait_for_block(uint32_t block_bytes) {
  return queue().take_kernargs(publication.kernargs, block_bytes, Deadline::after(patience));
}

std::byte* BatchState::try_take_block(uint32_t block_bytes) noexcept {
  return publication.queue->try_take_kernargs(publication.kernargs, block_bytes);
}

Refusal BatchState::refuse_block(uint32_t block_bytes, const char* call) const {
  const std::optional<Refusal> never = attempt([&]() -> std::optional<Refusal> {
    queue().require_block_size(block_bytes, call);
    return {};
  });
  return never.value_or(Refusal(ErrorCode::kernargs, call));
}

void BatchState::make_more_room() { BatchQueue::make_room(publication); }

void BatchState::refuse_ended() const { BatchQueue::refuse_ended(publication); }

void BatchState::lend(const KernelInfo& kernel, std::span<std::byte> block) {
  // implicit arguments are stored in 8-byte words
  const size_t needed = kernel.arguments.block_bytes();
  if (block.size() >= needed &&
      reinterpret_cast<uintptr_t>(block.data()) % KernargPool::kBlockAlignment == 0)
    return queue().lend(block.first(needed), publication);
  throw Error(
      {.code = ErrorCode::argument,
       .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
       .call = fmt::format("dispatch of '{}'", kernel.name),
       .asked =
           fmt::format("a kernarg block of {} bytes at {}", block.size(), fmt::ptr(block.data())),
       .found = fmt::format("the kernel needs {} bytes, and blocks are aligned to 64", needed),
       .remedy = "pass a larger or better aligned block"});
}

}  // namespace detail

BatchSubmitter::BatchSubmitter(Queue& queue, const BatchOptions& options)
    : state_(std::make_unique<detail::BatchState>(queue.state("BatchSubmitter"), options)) {}

BatchSubmitter::BatchSubmitter(BatchSubmitter&&) noexcept = default;
BatchSubmitter& BatchSubmitter::operator=(BatchSubmitter&&) noexcept = default;
BatchSubmitter::~BatchSubmitter() = default;

void BatchSubmitter::refuse_moved(const char* call) {
  detail::refuse_moved(call, "BatchSubmitter");
}

void BatchSubmitter::clear() noexcept {
  if (state_ && state_->publication.queue != nullptr)
    state_->publication.queue->drop(state_->publication);
}

void BatchSubmitter::raw(const aql::Packet64& packet) {
  detail::BatchState& batch = state("BatchSubmitter::raw");
  batch.make_room();
  batch.publication.put(packet);
}

void BatchSubmitter::after(hsa_signal_t signal, detail::SignalLoan loan) {
  detail::BatchState& batch = state("BatchSubmitter::after");
  (void)batch.queue();
  if (signal.handle == 0) refuse_empty("BatchSubmitter::after", "a wait for a signal");
  // A barrier packet acquires after its wait (HSA Platform System Architecture 1.2, 2.9). Fences
  // are agent-wide, so this acquire serves every later packet.
  const bool is_lent = static_cast<bool>(loan);
  if (is_lent) batch.publication.loans.push_back(std::move(loan));
  try {
    raw(aql::to_packet(aql::BarrierAnd{.flags = {.barrier = aql::Barrier::on,
                                                 .acquire = aql::FenceScope::system,
                                                 .release = aql::FenceScope::none},
                                       .dependencies = {signal}}));
  } catch (...) {
    if (is_lent) batch.publication.loans.pop_back();
    throw;
  }
}

void BatchSubmitter::complete_with(hsa_signal_t signal, detail::SignalLoan loan) {
  detail::BatchState& batch = state("BatchSubmitter::complete_with");
  detail::BatchQueue& queue = batch.queue();
  if (signal.handle == 0)
    refuse_empty("BatchSubmitter::complete_with", "the completion signal of a batch");
  if (batch.publication.published != 0)
    queue.refuse_more(batch.publication, "another completion signal");
  if (loan) batch.publication.loans.push_back(std::move(loan));
  batch.publication.own_signal = signal;
}

Completion BatchSubmitter::submit(CallSite site) {
  detail::BatchState& batch = state("BatchSubmitter::submit");
  // Common case: there is room at once, and the clock is not read.
  // strictly less: a packet may be added to complete a finished one
  if (batch.publication.packets.size() < batch.queue().longest_run())
    if (const auto completion = submit_to_queue(batch, Deadline::now(), site)) return *completion;
  return submit(Deadline::after(batch.patience), site);
}

Completion BatchSubmitter::submit(Deadline deadline, CallSite site) {
  detail::BatchState& batch = state("BatchSubmitter::submit");
  if (const auto completion = submit_to_queue(batch, deadline, site)) return *completion;
  batch.queue().throw_last_refusal(batch.publication);
}

Tried<Completion> BatchSubmitter::try_submit(CallSite site) {
  detail::BatchState& batch = state("BatchSubmitter::try_submit");
  return detail::attempt([&]() -> Tried<Completion> {
    if (const auto completion = submit_to_queue(batch, Deadline::now(), site)) return *completion;
    return Refusal(batch.queue().last_refusal(), "BatchSubmitter::try_submit");
  });
}

std::string BatchSubmitter::explain() { return uptempo::explain(plan()); }

}  // namespace uptempo
