#include "engine/dispatch/batch.hpp"

#include <fmt/format.h>

#include "engine/runtime/error.hpp"

namespace uptempo {

using detail::Command;

CommandRef& CommandRef::declare(const void* data, size_t bytes, bool writes) {
  detail::Publication& p = batch_->publication_;
  PacketIntent& intent = p.intents.back();
  if (!intent.declared) {
    intent.declared = true;
    intent.first_access = static_cast<uint32_t>(p.accesses.size());
  }
  if (bytes != 0) {
    const auto begin = reinterpret_cast<uintptr_t>(data);
    p.accesses.push_back({begin, begin + bytes, writes});
    ++intent.access_count;
  }
  return *this;
}

CommandRef& CommandRef::observed_by(Observer observer) {
  batch_->publication_.intents.back().observer = observer;
  return *this;
}

CommandRef& CommandRef::fences(aql::FenceScope acquire, aql::FenceScope release) {
  PacketIntent& intent = batch_->publication_.intents.back();
  intent.explicit_fences = true;
  intent.acquire = acquire;
  intent.release = release;
  return *this;
}

CommandRef& CommandRef::without_barrier() {
  batch_->publication_.intents.back().without_barrier = true;
  return *this;
}

BatchSubmitter::BatchSubmitter(Queue& queue, const BatchOptions& options)
    : BatchSubmitter(*queue.state_, options) {}

BatchSubmitter::BatchSubmitter(detail::QueueState& state, const BatchOptions& options)
    : state_(state), patience_(options.patience) {
  publication_.timing = options.timing;
  publication_.policy = options.fences;
  publication_.chunking = options.chunking;
}

BatchSubmitter::~BatchSubmitter() { state_.drop(publication_); }

void BatchSubmitter::clear() noexcept { state_.drop(publication_); }

// The plan of a batch that is partly out is made, and its last packet chosen.
void BatchSubmitter::require_open(const char* asked) const {
  if (publication_.published == 0) return;
  throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "BatchSubmitter",
               .asked = asked,
               .found = fmt::format("{} packets of this batch of {} are in the ring already",
                                    publication_.published, publication_.commands.size()),
               .remedy = "submit it to its end first, or clear it"});
}

bool BatchSubmitter::try_take_block(const KernelInfo& kernel, const Grid& grid, std::byte*& block) {
  require_open();
  require_geometry(kernel, grid);
  if (kernel.arguments.size_bytes() == 0) return true;
  block = state_.try_take_kernargs(publication_.kernargs, kernel.arguments.size_bytes());
  return block != nullptr;
}

std::byte* BatchSubmitter::take_block(const KernelInfo& kernel, const Grid& grid) {
  std::byte* block = nullptr;
  if (try_take_block(kernel, grid, block)) return block;
  return state_.take_kernargs(publication_.kernargs, kernel.arguments.size_bytes(),
                              Deadline::after(patience_));
}

void BatchSubmitter::require_block(const KernelInfo& kernel, const Grid& grid,
                                   std::span<std::byte> block) const {
  require_open();
  require_geometry(kernel, grid);
  if (block.size() >= kernel.arguments.size_bytes() &&
      reinterpret_cast<uintptr_t>(block.data()) % KernargPool::block_alignment == 0)
    return;
  throw Error(
      {.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
       .call = fmt::format("dispatch of '{}'", kernel.name),
       .asked = fmt::format("a kernarg block of {} bytes at {}", block.size(), fmt::ptr(block.data())),
       .found = fmt::format("the kernel needs {} bytes, and blocks are aligned to 64",
                            kernel.arguments.size_bytes()),
       .remedy = "pass a larger or better aligned block"});
}

void BatchSubmitter::push(const KernelInfo& kernel, const Grid& grid, std::byte* block,
                          uint32_t group_segment) {
  publication_.commands.push_back({.kernel_object = kernel.object,
                                   .kernargs = block,
                                   .grid = grid.items,
                                   .workgroup = grid.workgroup,
                                   .private_segment_size = kernel.private_segment_size,
                                   .group_segment_size = group_segment,
                                   .dimensions = grid.dimensions});
  publication_.intents.emplace_back();
}

void BatchSubmitter::raw(const aql::Packet64& packet) {
  require_open();
  if (aql::packet_type(packet.header()) == aql::PacketType::invalid) {
    throw Error({.status = HSA_STATUS_ERROR_INVALID_PACKET_FORMAT,
                 .call = "BatchSubmitter::raw",
                 .asked = fmt::format("a packet with header 0x{:04x}", packet.header()),
                 .found = "its type is INVALID: the queue would wait for it for ever",
                 .remedy = "give the packet its final header"});
  }
  const aql::HeaderFlags flags = aql::header_flags(packet.header());
  publication_.commands.push_back(
      {.raw = static_cast<uint32_t>(publication_.raw.size()), .kind = Command::Kind::raw});
  publication_.raw.push_back(packet);
  publication_.intents.push_back({.as_it_is = true,
                                  .without_barrier = flags.barrier == aql::Barrier::off,
                                  .acquire = flags.acquire,
                                  .release = flags.release});
}

void BatchSubmitter::complete_with(const Signal& signal) {
  require_open("another completion signal");
  publication_.own_signal = signal.handle();
}

Completion BatchSubmitter::submit() {
  // The common case finds room at once and reads no clock.
  if (size() < state_.writer().ring_size()) {
    if (std::optional<Completion> completion = try_submit()) return *completion;
  }
  return submit(Deadline::after(patience_));
}

Completion BatchSubmitter::submit(Deadline deadline) {
  const std::optional<uint64_t> value = state_.submit(publication_, deadline);
  if (!value) state_.throw_last_refusal();
  return {state_.timeline(), *value};
}

std::optional<Completion> BatchSubmitter::try_submit() {
  const std::optional<uint64_t> value = state_.submit(publication_, Deadline::now());
  if (!value) return {};
  return Completion{state_.timeline(), *value};
}

std::string BatchSubmitter::explain() const {
  std::string text;
  for (size_t i = 0; i < publication_.plans.size(); ++i) {
    text += fmt::format("packet {}: {}\n", i, uptempo::explain(publication_.plans[i]));
  }
  return text;
}

}  // namespace uptempo
