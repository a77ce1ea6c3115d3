// CacheSpoiler: packets that leave other bytes of a sequence's buffers in the caches before a run,
// so that a missing acquire shows. Private to Bench.
//
// Kernels fill all buffers and then read them. Nothing invalidates the caches afterwards.
//
// Thread safety: one owner.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <span>
#include <vector>

#include <uptempo/aql/packet.hpp>
#include <uptempo/memory/buffer.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/runtime/agent.hpp>
#include "tools/fence_scope/run/bench_buffers.hpp"
#include "tools/fence_scope/sequence/sequence.hpp"

namespace uptempo::fence_scope {

class CacheSpoiler {
 public:
  // The packets are for the queue of these facts. The last one completes `done`. Throws Error.
  CacheSpoiler(const Agent& gpu, const Sequence& sequence, const BenchBuffers& buffers,
               KernargBlocks& blocks, const QueueFacts& queue, hsa_signal_t done);

  // Empty for a sequence without buffers.
  std::span<const aql::Packet64> packets() const noexcept { return packets_; }

  // Keeps the memory allocated, because the device may still use it.
  void leave_to_session() noexcept { trash_.leave_to_session(); }

 private:
  Program transfer_;
  Kernel<unsigned char*, uint64_t, uint64_t, uint64_t> fill_;
  Kernel<unsigned char*, const unsigned char*, uint64_t> read_;
  Allocation trash_;  // the reading kernels write here
  std::vector<aql::Packet64> packets_;
};

}  // namespace uptempo::fence_scope
