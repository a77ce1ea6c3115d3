#include "engine/dispatch/dispatch_shape.hpp"

namespace uptempo::detail {

void DispatchShapes::make(DispatchShape& shape, const KernelInfo& kernel, const Grid& grid,
                          const QueueFacts& facts, aql::HeaderFlags flags) {
  require_geometry(kernel, grid);
  shape.kernel = 0;  // until it is whole
  shape.block_bytes = kernel.arguments.size_bytes();
  block_.resize((size_t{shape.block_bytes} + 7) / 8);
  kernel.arguments.fill_hidden(reinterpret_cast<std::byte*>(block_.data()), grid, facts);
  shape.implicit.clear();
  for (const uint32_t word : kernel.arguments.implicit_words())
    shape.implicit.push_back({.offset = 8 * word, .value = block_[word]});
  shape.packet = aql::to_packet(aql::KernelDispatch{.flags = flags,
                                                    .grid = grid.items,
                                                    .workgroup = grid.workgroup,
                                                    .dimensions = grid.dimensions,
                                                    .private_segment_size = kernel.private_segment_size,
                                                    .group_segment_size = kernel.group_segment_size,
                                                    .kernel_object = kernel.object});
  shape.grid = grid;
  shape.kernel = kernel.identity.number();
}

}  // namespace uptempo::detail
