// KernargBlocks: kernarg blocks that are written once, for kernels whose packets the bench builds
// itself. Private to Bench.
//
// Thread safety: one owner.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include <uptempo/aql/packet.hpp>
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

// Writes an explicit argument.
template <class T>
void put(std::byte* block, const KernelInfo& kernel, size_t argument, const T& value) {
  std::memcpy(block + kernel.arguments.offset(argument), &value, sizeof value);
}

// A dispatch with default header flags and no completion signal.
aql::KernelDispatch dispatch_of(const KernelInfo& kernel, const Grid& grid, std::byte* block);

}  // namespace uptempo::fence_scope
