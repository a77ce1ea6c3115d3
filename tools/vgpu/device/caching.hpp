// How the caches of a target treat memory: facts, as data, that both the fence checker and the incoherent mode start from.
//
// The caches of one gfx9 agent (LLVM AMDGPUUsage, "Memory Model GFX6-GFX9" and "Memory Model gfx90A"):
// * vector L1, one per compute unit: reads allocate, stores go through to L2, loads with GLC miss, atomics are carried out in L2; not kept
//   coherent with that of any other compute unit; holds every memory type;
// * scalar L1, shared by a few compute units: not coherent with the vector L1s;
// * L2, one per agent: what its memory type says. The host and the SDMA engines go to memory beside it.
// A wave has all its stores in L2 when it ends (Vega ISA, S_ENDPGM: implicit S_WAITCNT 0).
//
// Packet fences (ROCr and the CP firmware's ACQUIRE_MEM and RELEASE_MEM): an acquire of agent scope or wider invalidates both kinds of L1 of the
// whole agent; one of system scope L2 as well; a release of system scope writes L2 back. A release of agent scope has nothing to do.
#pragma once

#include <cstdint>
#include <string_view>

#include "device/memory.hpp"

namespace uptempo::vgpu {

// MTYPE of a page table entry, as far as L2 is concerned.
enum class MemoryType : uint8_t {
  uncached,      // UC: not in L2
  non_coherent,  // NC: in L2, dirty until it is written back, stale until it is invalidated
  read_write,    // RW: the same, for memory local to the L2
  coherent,      // CC: in L2, written through, invalidated by writes of others
};

// Fence scopes as a packet's header counts them (hsa.h, hsa_fence_scope_t).
enum class FenceScope : uint8_t { none, agent, system };
std::string_view scope_name(FenceScope scope) noexcept;  // as above

// What a fence or a PM4 command has the caches of an agent do, each of them as a whole. L2 is written back before it is invalidated.
struct CacheActions {
  bool invalidate_vector_l1 = false;
  bool invalidate_scalar_l1 = false;
  bool write_back_l2 = false;
  bool invalidate_l2 = false;
};

// Whether a copy in L2 may differ from what the host and the SDMA engines see.
constexpr bool l2_needs_fences(MemoryType type) noexcept {
  return type == MemoryType::non_coherent || type == MemoryType::read_write;
}

// What the kernel driver maps a buffer of that kind with (Linux amdgpu_amdkfd_gpuvm.c, get_pte_flags()). `target` as in DeviceDescription.
MemoryType memory_type(std::string_view target, MemoryKind kind) noexcept;

std::string_view memory_kind_name(MemoryKind kind) noexcept;  // "fine-grained host memory"

// Whether the floating-point atomics of FLAT, GLOBAL and buffers work on such memory. L2 alone
// carries them out: the fabric behind it has integer and bitwise atomics only. So they work on
// coarse-grained memory, of the host too, and do nothing on any other kind: memory stays as it is,
// and the lane gets 0. Targets: gfx90a (add_f32, pk_add_f16, add, min and max
// of f64) and gfx908 (add_f32, pk_add_f16, without a returned value); gfx900 and gfx906 have none.
// LDS has its own. Sources: ROCm, "Hardware atomics operation support", support summary of MI200
// and MI100 and its definition of NOP; HIP's tests AtomicAdd_withunsafeflag and
// AtomicAdd_NonCoherent_withunsafeflag (gfx90a, hipHostMalloc).
constexpr bool float_atomics_work(MemoryKind kind) noexcept {
  return kind == MemoryKind::coarse_grained || kind == MemoryKind::device_local;
}

// Bytes of a line (Vega ISA; gfx90a: CDNA2 ISA, "Memory hierarchy").
constexpr uint32_t kVectorL1LineBytes = 64;
constexpr uint32_t kScalarL1LineBytes = 64;
constexpr uint32_t kL2LineBytes =
    128;  // gfx90a; 64 on gfx900 to gfx908, where whole pairs are a superset

// Both L1s have 16 KiB (ROCm, "Accelerator and GPU hardware specifications"). Two compute units of CDNA 2 share a scalar L1; how many do on
// gfx900 to gfx908 depends on which are fused off, and no rule depends on it.
constexpr uint32_t kL1Bytes = 16 * 1024;
constexpr uint32_t kComputeUnitsPerScalarL1 = 2;

// What L2 can deliver to the vector L1 of one compute unit (AMD, "Graphics Core Next Architecture", whitepaper of 2012; not changed since).
constexpr uint32_t kL1FillBytesPerClock = 64;

}  // namespace uptempo::vgpu
