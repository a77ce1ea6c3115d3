#include "tools/fence_scope/run/kernarg_blocks.hpp"

#include <algorithm>

namespace uptempo::fence_scope {

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
