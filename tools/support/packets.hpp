// Dispatch packets as a tool writes them: header and kernarg block are the caller's.
//
// Thread safety: pure functions over the caller's memory.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include <uptempo/aql/packet.hpp>
#include <uptempo/program/program.hpp>

namespace uptempo::support {

// Bytes between kernarg blocks that share no cache line, enough for every kernel of this tree.
inline constexpr size_t kBlockBytes = 512;

// Writes the explicit and hidden arguments of a dispatch to `block`, which has room for them.
template <class... Args>
void write_arguments(const Kernel<Args...>& kernel, std::byte* block, const Grid& grid,
                     const QueueFacts& queue, const std::type_identity_t<Args>&... args) {
  const ArgumentLayout& layout = kernel.info().arguments;
  layout.fill_hidden(block, grid, queue);
  size_t argument = 0;
  (std::memcpy(block + layout.offset(argument++), &args, sizeof args), ...);
}

inline aql::KernelDispatch dispatch_of(const KernelInfo& kernel, const Grid& grid, std::byte* block,
                                       aql::HeaderFlags flags = {},
                                       hsa_signal_t done = {0}) noexcept {
  return {.flags = flags,
          .grid = grid.items,
          .workgroup = grid.workgroup,
          .dimensions = grid.dimensions,
          .private_segment_size = kernel.private_segment_size,
          .group_segment_size = kernel.group_segment_size + grid.lds_bytes,
          .kernel_object = kernel.object,
          .kernarg_address = block,
          .completion_signal = done};
}

}  // namespace uptempo::support
