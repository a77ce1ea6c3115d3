#include "tools/fence_scope/run/cache_spoiler.hpp"

#include <algorithm>

#include <uptempo/kernels/transfer.hpp>
#include "tools/support/packets.hpp"

namespace uptempo::fence_scope {

using aql::Barrier;
using aql::FenceScope;

CacheSpoiler::CacheSpoiler(const Agent& gpu, const Sequence& sequence, const BenchBuffers& buffers,
                           KernargBlocks& blocks, const QueueFacts& queue, hsa_signal_t done)
    : transfer_(gpu, builtin_kernels::transfer()),
      fill_(transfer_.kernel<unsigned char*, uint64_t, uint64_t, uint64_t>("fill_bytes")),
      read_(transfer_.kernel<unsigned char*, const unsigned char*, uint64_t>("copy_bytes")) {
  if (buffers.size() == 0) return;
  trash_ = Allocation(gpu, MemoryKind::device, buffers.largest_bytes());
  constexpr uint64_t pattern = 0xa5a5a5a5a5a5a5a5, unit = 16;
  std::vector<aql::Packet64> reads;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const uint64_t bytes = sequence.buffers[i].bytes;
    const Grid grid =
        Grid{static_cast<uint32_t>(std::clamp<uint64_t>(bytes / unit, 64, 65536))}.by(64);
    std::byte* const filling = blocks.make(fill_.info(), grid, queue);
    support::write_arguments(fill_, filling, grid, queue,
                             reinterpret_cast<unsigned char*>(buffers.at(i)), bytes, pattern,
                             pattern);
    packets_.push_back(aql::to_packet(support::dispatch_of(
        fill_.info(), grid, filling,
        {Barrier::on, i == 0 ? FenceScope::system : FenceScope::none, FenceScope::agent})));

    std::byte* const reading = blocks.make(read_.info(), grid, queue);
    support::write_arguments(read_, reading, grid, queue,
                             static_cast<unsigned char*>(trash_.data()),
                             reinterpret_cast<unsigned char*>(buffers.at(i)), bytes);
    reads.push_back(aql::to_packet(support::dispatch_of(
        read_.info(), grid, reading,
        {Barrier::on, i == 0 ? FenceScope::agent : FenceScope::none, FenceScope::none})));
  }
  packets_.insert(packets_.end(), reads.begin(), reads.end());
  packets_.push_back(aql::to_packet(aql::BarrierAnd{
      .flags = {Barrier::on, FenceScope::none, FenceScope::system}, .completion_signal = done}));
}

}  // namespace uptempo::fence_scope
