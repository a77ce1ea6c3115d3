// The functions of query.h.
#include "query.h"

#include <optional>

#include "interpose/real.hpp"
#include "kfd/process.hpp"
#include "kfd/queues.hpp"

using namespace uptempo::vgpu;

UPTEMPO_VGPU_EXPORT int uptempo_vgpu_packets(uptempo_vgpu_packet_counts* counts) {
  const kfd::Process* const process = kfd::Process::existing();
  if (process == nullptr) return -1;
  *counts = {process->counts().dispatches(), process->counts().others()};
  return 0;
}

UPTEMPO_VGPU_EXPORT int uptempo_vgpu_device(uptempo_vgpu_device_counts* counts) {
  const kfd::Process* const process = kfd::Process::existing();
  if (process == nullptr) return -1;
  const DeviceCounts& device = process->counts();
  const Caches* const caches = process->caches();
  const MovedLines lines = caches == nullptr ? MovedLines{} : caches->moved_lines();
  *counts = {.packets = device.dispatches() + device.others(),
             .barrier_bits = device.barrier_bits(),
             .agent_acquires = device.acquires(FenceScope::agent),
             .system_acquires = device.acquires(FenceScope::system),
             .agent_releases = device.releases(FenceScope::agent),
             .system_releases = device.releases(FenceScope::system),
             .doorbells = device.doorbells(),
             .signal_updates = device.signal_updates(),
             .interrupts = device.interrupts(),
             .lines_counted = caches == nullptr ? 0u : 1u,
             .vector_l1_lines_invalidated = lines.vector_l1_invalidated,
             .scalar_l1_lines_invalidated = lines.scalar_l1_invalidated,
             .l2_lines_invalidated = lines.l2_invalidated,
             .l2_lines_written_back = lines.l2_written_back};
  return 0;
}

UPTEMPO_VGPU_EXPORT int uptempo_vgpu_copy_engine(uint32_t engine,
                                                 uptempo_vgpu_copy_engine_counts* counts) {
  const kfd::Process* const process = kfd::Process::existing();
  if (process == nullptr) return -1;
  const kfd::SdmaLayout engines = kfd::sdma_layout(process->description());
  if (engine >= engines.engines + engines.xgmi_engines) return -1;
  *counts = {process->counts().copies(engine), process->counts().copied_bytes(engine)};
  return 0;
}

UPTEMPO_VGPU_EXPORT int uptempo_vgpu_bar(uptempo_vgpu_bar_counts* counts) {
  const kfd::Process* const process = kfd::Process::existing();
  if (process == nullptr || process->lazy_bar() == nullptr) return -1;
  *counts = {.host_reads_of_device_memory = process->lazy_bar()->host_reads(),
             .hdp_flushes = process->lazy_bar()->hdp_flushes()};
  return 0;
}

UPTEMPO_VGPU_EXPORT int uptempo_vgpu_findings(uptempo_vgpu_finding_counts* counts) {
  const kfd::Process* const process = kfd::Process::existing();
  if (process == nullptr || process->checker() == nullptr) return -1;
  const auto found = process->checker()->counts();
  *counts = {found.unordered, found.stale, found.unreleased};
  return 0;
}

UPTEMPO_VGPU_EXPORT int uptempo_vgpu_holdings(uptempo_vgpu_holding_counts* counts) {
  const kfd::Process* const process = kfd::Process::existing();
  if (process == nullptr) return -1;
  const kfd::Holdings held = process->holdings();
  *counts = {.queues = held.queues,
             .signal_events = held.events.signal,
             .other_events = held.events.other,
             .buffers = held.memory.buffers,
             .vram_bytes = held.memory.vram_bytes,
             .gtt_bytes = held.memory.gtt_bytes,
             .userptr_bytes = held.memory.userptr_bytes};
  return 0;
}

UPTEMPO_VGPU_EXPORT int uptempo_vgpu_queue(const void* ring, uint32_t* number) {
  const kfd::Process* const process = kfd::Process::existing();
  if (process == nullptr) return -1;
  const std::optional<uint32_t> ordinal =
      process->queue_with_ring(reinterpret_cast<uint64_t>(ring));
  if (!ordinal) return -1;
  *number = *ordinal;
  return 0;
}
