// Where queues, recordings and streams keep kernel arguments: in host memory or in the GPU's own.
//
//   Queue queue{gpu, {.kernargs = KernargPlacement::device}};   // its batches and recordings
//   Streams streams{gpu, {.queue = {.kernargs = KernargPlacement::automatic}}};
//   if (queue.kernargs().placement != KernargPlacement::device) log(queue.kernargs().reason);
//
// QueueOptions::kernargs is the one option. Batches and recordings follow their Queue; streams and
// launchers follow StreamsOptions::queue.
//
// Device memory: a kernel then reads its arguments from local memory instead of over the bus. The
// host writes them through a large BAR, write-combined. Before the first header of a publication
// that has new arguments, the engine executes one `sfence` and one flush: a store to the agent's
// HDP_MEM_FLUSH_CNTL register with a read of the register, or, where ROCr does not map the
// register, a store to a line after all arguments, `mfence` and a read of that line. It reads no
// device memory otherwise: comparisons and patches use copies in host memory.
// Counters::hdp_flushes and ::kernarg_read_backs count the flushes. Where the host's link to the
// GPU is xGMI, no host data path is between them and stores are coherent: the engine executes the
// `sfence` alone, as CLR flushes nothing there.
//
// Fences: device memory is coarse-grained, so L2 may hold old bytes of a reused block, except where
// the host's stores invalidate them (gfx942, gfx950; MemoryModel). Every launch of a stream
// therefore acquires at system scope. The first packet of a batch or recording does in any case,
// also if a caller's fences() ask for less.
//
// Threads: the stores to device memory are write-combined. A thread that hands a batch with unsent
// arguments to another thread executes aql::store_fence() before the hand-over, unless a mutex or
// another locked instruction does it. Streams, launchers, recordings and shared queues need
// nothing.
//
// Without a large BAR, and for memory that the host cannot reach, arguments stay in host memory;
// KernargPlace::reason says so. This is not an Error: the results are the same.
//
// A caller's own block (BatchSubmitter::dispatch_at, raw packets) is the caller's to flush.
//
// Sources: CLR, rocsettings.cpp, setKernelArgImpl() (which agents, and xGMI before the register),
// rocdevice.cpp, setupCpuAgent() (the link's type), rocvirtual.cpp, submitKernelInternal() (flush,
// read-back); hsa_ext_amd.h, HSA_AMD_AGENT_INFO_HDP_FLUSH.
// Thread safety: any thread. Set-up only: choose_kernarg_place() makes HSA calls.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <uptempo/runtime/agent.hpp>

namespace uptempo {

enum class KernargPlacement : uint8_t {
  host,    // fine-grained host memory
  device,  // the GPU's coarse-grained memory, if the host reaches it; otherwise host memory
  // device on agents that CLR does it for (gfx940, gfx941, gfx942, gfx950, gfx125x); otherwise host
  automatic,
};

std::string_view name_of(KernargPlacement placement) noexcept;

// The placement that was chosen.
struct KernargPlace {
  KernargPlacement asked = KernargPlacement::host;
  KernargPlacement placement = KernargPlacement::host;  // never automatic
  std::string reason = "asked for";                     // why, in words
  // HDP_MEM_FLUSH_CNTL of the agent. Null: for host memory, where it is not mapped, and over xGMI.
  uint32_t* hdp_flush = nullptr;
  bool coherent_link = false;  // xGMI: the host's stores to device memory need no flush

  bool is_on_device() const noexcept { return placement == KernargPlacement::device; }
};

// Throws Error if HSA does not report the agent's properties.
KernargPlace choose_kernarg_place(const Agent& gpu, KernargPlacement asked);

namespace detail {

// HDP_MEM_FLUSH_CNTL of the agent. Null if ROCr has not mapped it, and on versions that do not
// report it.
uint32_t* hdp_flush_register(const Agent& gpu) noexcept;

// The choice as a function of the facts.
KernargPlace choose_kernarg_place(const AgentProperties& agent, bool host_has_access,
                                  uint32_t* hdp_flush, KernargPlacement asked);

}  // namespace detail
}  // namespace uptempo
