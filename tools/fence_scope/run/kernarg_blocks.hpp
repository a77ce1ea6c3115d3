// KernargBlocks: kernarg blocks that are written once, for kernels whose packets the bench builds
// itself. Private to Bench.
//
// Thread safety: one owner.
#pragma once

#include <cstddef>
#include <vector>

#include <uptempo/memory/buffer.hpp>
#include <uptempo/program/argument_layout.hpp>
#include <uptempo/program/grid.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/runtime/agent.hpp>

namespace uptempo::fence_scope {

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
