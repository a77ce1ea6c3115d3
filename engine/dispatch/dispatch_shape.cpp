#include <uptempo/dispatch/detail/dispatch_shape.hpp>

#include <uptempo/dispatch/pools/kernarg_pool.hpp>
#include <uptempo/runtime/attempt.hpp>

namespace uptempo::detail {

void DispatchShapes::make(DispatchShape& shape, const KernelInfo& kernel, uint64_t items_xy,
                          uint64_t items_z_workgroup_x, uint64_t workgroup_yz,
                          uint64_t dimensions_lds) {
  const auto low = [](uint64_t pair) { return static_cast<uint32_t>(pair); };
  const auto high = [](uint64_t pair) { return static_cast<uint32_t>(pair >> 32); };
  Grid grid = Grid{low(items_xy), high(items_xy), low(items_z_workgroup_x)}
                  .by(high(items_z_workgroup_x), low(workgroup_yz), high(workgroup_yz))
                  .lds(high(dimensions_lds));
  grid.dimensions = static_cast<uint16_t>(low(dimensions_lds));
  require_agent(kernel, facts_.agent);
  require_geometry(kernel, grid);
  shape.key = {};  // invalid until it is complete
  const uint32_t bytes = kernel.arguments.size_bytes();
  shape.block_bytes = static_cast<uint32_t>(KernargPool::block_bytes(bytes));
  // zeros also at explicit arguments, because whole words are compared
  block_.assign((size_t{bytes} + 7) / 8, 0);
  kernel.arguments.fill_hidden(reinterpret_cast<std::byte*>(block_.data()), grid, facts_);
  shape.implicit.clear();
  for (const uint32_t word : kernel.arguments.implicit_words())
    shape.implicit.push_back({.offset = 8 * word, .value = block_[word]});
  shape.implicit_words = shape.implicit.size();
  shape.reads_packet = kernel.reads_packet;
  if (kernel.reads_packet && reads_packet_ != nullptr) *reads_packet_ = true;
  shape.packet = aql::to_packet(
      aql::KernelDispatch{.flags = flags_,
                          .grid = grid.items,
                          .workgroup = grid.workgroup,
                          .dimensions = grid.dimensions,
                          .private_segment_size = kernel.private_segment_size,
                          .group_segment_size = kernel.group_segment_size + grid.lds_bytes,
                          .kernel_object = kernel.object});
  shape.key = {kernel, grid};
}

Tried<const DispatchShape*> DispatchShapes::try_make(const KernelInfo& kernel, const Grid& grid) {
  return attempt([&]() -> Tried<const DispatchShape*> { return &of(kernel, grid); });
}

}  // namespace uptempo::detail
