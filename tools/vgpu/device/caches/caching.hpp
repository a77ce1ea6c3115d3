// How the caches of a target treat memory: data on which the fence checker and the incoherent mode
// are based.
//
// The caches of one gfx9 agent (LLVM AMDGPUUsage, "Memory Model GFX6-GFX9", "Memory Model gfx90A"
// and "Memory Model GFX942"):
// * Vector L1, one per compute unit. Reads allocate, stores write through to L2, loads with GLC
//   miss, and L2 executes atomics. Not coherent with the L1 of any other compute unit. Holds every
//   memory type.
// * Scalar L1, shared by a few compute units. Not coherent with the vector L1s.
// * L2, one per XCD; devices before gfx942 have one. The memory type decides what it holds. The
//   host and the SDMA engines bypass it. The memory-side cache of gfx942 is beyond the L2s, and all
//   agents and engines reach memory through it.
// Memory of a peer is not local to the L2s of the accessing GPU. Coarse-grained memory is NC there,
// so those L2s hold it, dirty or old, as they hold host memory. The owner's L2s hold their own
// copies. A write that leaves the accessing GPU as a coherent request invalidates clean copies in
// the owner's L2s (peer_writes_probe()). No request sees or removes dirty bytes of another L2.
// A wave's stores are all in L2 when it ends (Vega ISA, S_ENDPGM: implicit S_WAITCNT 0).
//
// Packet fences (ROCr and the CP firmware's ACQUIRE_MEM and RELEASE_MEM): an acquire of agent scope
// or wider invalidates both kinds of L1 of the whole agent. An acquire of system scope also
// invalidates L2; bytes that were dirty then are not old after their write-back. A release of
// system scope writes L2 back. Where an agent has several L2s, an acquire of agent scope
// invalidates them and a release of agent scope writes them back; one L2 makes both do nothing to
// it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "device/memory.hpp"

namespace uptempo::vgpu {

// MTYPE of a page table entry, as far as it concerns L2.
enum class MemoryType : uint8_t {
  uncached,      // UC: not in L2
  non_coherent,  // NC: in L2, dirty until written back, stale until invalidated
  read_write,    // RW: the same, for memory local to the L2
  coherent,      // CC: in L2, written through, invalidated by writes of others
  // RW whose page table entry has the C bit, on an agent with several L2s: in L2, dirty until
  // written back. What others write to memory invalidates clean copies.
  probed_read_write,
};

// How far a load, store, atomic or cache control instruction reaches: the bits sc0 and sc1 of
// gfx942 (LLVM AMDGPUUsage, "Memory Model GFX942"). Older targets have GLC, which makes a load miss
// L1: `agent`.
enum class AccessScope : uint8_t { wave, workgroup, agent, system };

// Fence scopes as encoded in a packet header (hsa.h, hsa_fence_scope_t).
enum class FenceScope : uint8_t { none, agent, system };
std::string_view scope_name(FenceScope scope) noexcept;  // the enumerator's name

// The effect of a fence or a PM4 command on the caches of an agent, each as a whole. L2 is written
// back before it is invalidated.
struct CacheActions {
  bool invalidate_vector_l1 = false;
  bool invalidate_scalar_l1 = false;
  bool write_back_l2 = false;
  bool invalidate_l2 = false;
};

// Returns whether L2 may hold bytes that have not been written back to memory.
constexpr bool l2_holds_dirty(MemoryType type) noexcept {
  return type == MemoryType::non_coherent || type == MemoryType::read_write ||
         type == MemoryType::probed_read_write;
}
// Returns whether bytes that one L2 has not written back are hidden from workgroups of the same
// agent.
constexpr bool l2s_differ(MemoryType type) noexcept {
  return type == MemoryType::probed_read_write;
}
// Returns whether a clean copy in L2 may be older than memory.
constexpr bool l2_goes_stale(MemoryType type) noexcept {
  return type == MemoryType::non_coherent || type == MemoryType::read_write;
}

// How a target treats one kind of memory.
struct Coherence {
  std::string_view target;
  MemoryKind kind;
  MemoryType type;
  std::string_view source;
};

// One row for each target and kind of memory that a program can allocate, or reach on a peer.
std::span<const Coherence> coherence_table() noexcept;

// The memory type with which the kernel driver maps a buffer of that kind: from coherence_table();
// registers and doorbells are uncached. `target` as in DeviceDescription.
MemoryType memory_type(std::string_view target, MemoryKind kind) noexcept;

// Returns whether a write to the memory of a peer over xGMI is a coherent request: it invalidates
// clean copies in the owner's L2. Over PCI Express the incoherent mode takes it for none.
// Sources: Linux gmc_v9_0_get_coherence_flags() sets the C bit (AMDGPU_PTE_SNOOPED) of peer memory
// on GC 9.4.1 and 9.4.2 if `is_xgmi`, on 9.4.3 always, on older ones never; LLVM AMDGPUUsage,
// Memory Model GFX90A: accesses to pages with the C bit are coherent requests.
bool peer_writes_probe(std::string_view target) noexcept;

std::string_view memory_kind_name(MemoryKind kind) noexcept;  // "fine-grained host memory"

// Returns whether the floating-point atomics of FLAT, GLOBAL and buffers work on such memory.
// gfx908, gfx90a: only L2 executes them; the fabric beyond it has integer and bitwise atomics only.
// So they work on coarse-grained memory, including the host's and a peer's. On any other kind,
// memory does not change and the lane gets 0.
// gfx942 (`fabric_has_them`): they work on any memory. The fabric executes them. For host memory,
// the GPU's PCIe controller turns what PCIe lacks into a load, the operation and a store, which are
// atomic among the GPU's waves alone.
// Instructions: gfx90a and gfx942 have add_f32, pk_add_f16, add, min and max of f64, gfx942 also
// pk_add_bf16; gfx908 has add_f32 and pk_add_f16 without a returned value; gfx900 and gfx906 have
// none. LDS has its own.
// Sources: ROCm, "Hardware atomics operation support", support summary of MI300, MI200 and MI100
// and its definition of NOP; HIP's tests AtomicAdd_withunsafeflag and AtomicAdd_NonCoherent_withunsafeflag
// (gfx90a, hipHostMalloc).
constexpr bool float_atomics_work(bool fabric_has_them, MemoryKind kind) noexcept {
  return fabric_has_them || kind == MemoryKind::coarse_grained ||
         kind == MemoryKind::device_local || kind == MemoryKind::peer_local;
}

// Bytes of a line (Vega ISA; gfx90a: CDNA2 ISA, "Memory hierarchy"; gfx942: CDNA 3 whitepaper). The
// vector L1's is in DeviceDescription.
constexpr uint32_t kScalarL1LineBytes = 64;
// gfx90a, gfx942. gfx900 to gfx908 have 64-byte lines, for which whole pairs are a superset.
constexpr uint32_t kL2LineBytes = 128;

// The scalar L1 has 16 KiB (ROCm, "Accelerator and GPU hardware specifications"). Two compute units
// of CDNA 2 and 3 share one. On gfx900 to gfx908 the number depends on fused-off units; no rule
// depends on it.
constexpr uint32_t kScalarL1Bytes = 16 * 1024;
constexpr uint32_t kComputeUnitsPerScalarL1 = 2;

// Bytes that L2 delivers to the vector L1 of one compute unit (AMD, "Graphics Core Next
// Architecture", whitepaper of 2012; unchanged since then).
constexpr uint32_t kL1FillBytesPerClock = 64;

}  // namespace uptempo::vgpu
