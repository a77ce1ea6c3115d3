// Dispatch packets as a probe writes them: header and kernarg block are the caller's.
//
// Thread safety: pure functions over the caller's memory.
#pragma once

#include <cstddef>
#include <cstring>

#include <uptempo/aql/packet.hpp>
#include <uptempo/program/program.hpp>

namespace uptempo::hardware {

// Bytes between kernarg blocks that share no cache line, enough for every kernel of the probes.
inline constexpr size_t kBlockBytes = 512;

// Writes the arguments of a one-dimensional dispatch to `block`, whose size is kBlockBytes.
template <class... Args>
void write_arguments(const Kernel<Args...>& kernel, std::byte* block, uint32_t work_items,
                     uint32_t workgroup, const QueueFacts& queue, const Args&... args) {
  const ArgumentLayout& layout = kernel.info().arguments;
  layout.fill_hidden(block, Grid{work_items}.by(workgroup), queue);
  size_t argument = 0;
  (std::memcpy(block + layout.offset(argument++), &args, sizeof args), ...);
}

inline aql::Packet64 dispatch_of(const KernelInfo& kernel, uint32_t work_items, uint32_t workgroup,
                                 std::byte* block, aql::HeaderFlags flags,
                                 hsa_signal_t done = {0}) noexcept {
  return aql::to_packet(aql::KernelDispatch{.flags = flags,
                                            .grid = {work_items, 1, 1},
                                            .workgroup = {workgroup, 1, 1},
                                            .private_segment_size = kernel.private_segment_size,
                                            .group_segment_size = kernel.group_segment_size,
                                            .kernel_object = kernel.object,
                                            .kernarg_address = block,
                                            .completion_signal = done});
}

}  // namespace uptempo::hardware
