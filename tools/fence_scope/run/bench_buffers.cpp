#include "tools/fence_scope/run/bench_buffers.hpp"

#include <algorithm>
#include <cstring>

#include "tools/litmus/runner.hpp"

namespace uptempo::fence_scope {
BenchBuffers::BenchBuffers(const Agent& gpu, const Sequence& sequence, Copier& copier)
    : sequence_(sequence), copier_(copier) {
  for (const Buffer& buffer : sequence.buffers) {
    memory_.emplace_back(gpu, litmus::memory_kind(buffer.kind), buffer.bytes);
    std::byte* const bytes = static_cast<std::byte*>(
        initial_.emplace_back(gpu, MemoryKind::pinned, buffer.bytes).data());
    const size_t period = buffer.initial.size();
    for (uint64_t i = 0; i < buffer.bytes; ++i)
      bytes[i] = period == 0 ? std::byte{0} : buffer.initial[i % period];
    largest_bytes_ = std::max(largest_bytes_, buffer.bytes);
  }
  if (largest_bytes_ != 0) staging_ = Allocation(gpu, MemoryKind::pinned, largest_bytes_);
}

std::optional<Bench::Place> BenchBuffers::place_of(uint64_t address) const noexcept {
  for (size_t i = 0; i < memory_.size(); ++i) {
    const auto begin = reinterpret_cast<uint64_t>(memory_[i].data());
    if (address >= begin && address - begin < sequence_.buffers[i].bytes)
      return Bench::Place{i, address - begin};
  }
  return std::nullopt;
}

void BenchBuffers::reset() {
  for (size_t i = 0; i < memory_.size(); ++i) {
    const uint64_t bytes = sequence_.buffers[i].bytes;
    if (sequence_.buffers[i].kind == BufferKind::device_local)
      copier_.copy(CopyTarget::device(memory_[i].data(), bytes),
                   CopySource::pinned(initial_[i].data(), bytes));
    else
      std::memcpy(memory_[i].data(), initial_[i].data(), bytes);
  }
}

std::span<const std::byte> BenchBuffers::contents(size_t buffer) {
  const uint64_t bytes = sequence_.buffers[buffer].bytes;
  const void* from = memory_[buffer].data();
  if (sequence_.buffers[buffer].kind == BufferKind::device_local) {
    copier_.copy(CopyTarget::pinned(staging_.data(), bytes), CopySource::device(from, bytes));
    from = staging_.data();
  }
  return {static_cast<const std::byte*>(from), bytes};
}

void BenchBuffers::leave_to_session() noexcept {
  for (auto* const memories : {&memory_, &initial_})
    for (Allocation& allocation : *memories) allocation.leave_to_session();
  staging_.leave_to_session();
}

std::byte* KernargBlocks::make(const KernelInfo& kernel, const Grid& grid,
                               const QueueFacts& queue) {
  const size_t bytes = kernel.arguments.size_bytes();
  if (bytes == 0) return nullptr;
  const size_t line = std::max<size_t>(64, kernel.arguments.alignment());
  constexpr size_t page = 65536;
  next_ = (next_ + line - 1) / line * line;
  if (pages_.empty() || next_ + bytes > pages_.back().size_bytes()) {
    pages_.emplace_back(gpu_, MemoryKind::kernarg, std::max(page, bytes));
    next_ = 0;
  }
  std::byte* const block = static_cast<std::byte*>(pages_.back().data()) + next_;
  next_ += bytes;
  kernel.arguments.fill_hidden(block, grid, queue);
  return block;
}

void KernargBlocks::leave_to_session() noexcept {
  for (Allocation& page : pages_) page.leave_to_session();
}

}  // namespace uptempo::fence_scope
