// Memory of a bench. BenchBuffers: the buffers of a sequence, their initial bytes, and what a run
// has left in them. KernargBlocks: blocks that are written once, for kernels whose packets the
// bench builds itself. Private to Bench.
//
// Thread safety: one owner.
// Lifetime: the sequence and the copier must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <uptempo/memory/buffer.hpp>
#include <uptempo/program/argument_layout.hpp>
#include <uptempo/program/grid.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/runtime/agent.hpp>
#include <uptempo/stream/stream.hpp>
#include "tools/fence_scope/run/bench.hpp"
#include "tools/fence_scope/sequence/sequence.hpp"

namespace uptempo::fence_scope {

class BenchBuffers {
 public:
  // Allocates the memory; its contents are undefined until reset(). Throws Error.
  BenchBuffers(const Agent& gpu, const Sequence& sequence, Copier& copier);

  size_t size() const noexcept { return memory_.size(); }
  uint64_t largest_bytes() const noexcept { return largest_bytes_; }
  std::byte* at(size_t buffer, uint64_t begin = 0) const noexcept {
    return static_cast<std::byte*>(memory_[buffer].data()) + begin;
  }
  std::byte* at(const Access& range) const noexcept { return at(range.buffer, range.begin); }
  std::optional<Bench::Place> place_of(uint64_t address) const noexcept;

  // Writes the initial bytes. No run may be in flight.
  void reset();
  // The bytes of a buffer, readable by the host until the next call.
  std::span<const std::byte> contents(size_t buffer);

  // Keeps the memory allocated, because the device may still use it.
  void leave_to_session() noexcept;

 private:
  const Sequence& sequence_;
  Copier& copier_;
  std::vector<Allocation> memory_, initial_;  // [buffer]
  uint64_t largest_bytes_ = 0;
  Allocation staging_;  // for contents() of device memory
};

class KernargBlocks {
 public:
  explicit KernargBlocks(const Agent& gpu) : gpu_(gpu) {}

  // A block of `kernel`, with its hidden arguments, for a dispatch in the queue of these facts.
  // Null if the kernel has no arguments. Throws Error.
  std::byte* make(const KernelInfo& kernel, const Grid& grid, const QueueFacts& queue);

  // Keeps the memory allocated, because the device may still use it.
  void leave_to_session() noexcept;

 private:
  Agent gpu_;
  std::vector<Allocation> pages_;
  size_t next_ = 0;  // first free byte of the last page
};

}  // namespace uptempo::fence_scope
