// The functions of query.h.
#include <uptempo/vgpu/query.h>

#include <optional>

#include "interpose/real.hpp"
#include "kfd/process.hpp"
#include "kfd/queues.hpp"

using namespace uptempo::vgpu;

namespace {

// Returns the sum of a count over the GPUs of the process.
template <typename Count>
uint64_t sum(const kfd::Process& process, Count count) {
  uint64_t total = 0;
  for (const auto& gpu : process.gpus()) total += count(gpu->counts);
  return total;
}

}  // namespace

UPTEMPO_VGPU_EXPORT int uptempo_vgpu_packets(uptempo_vgpu_packet_counts* counts) {
  const kfd::Process* const process = kfd::Process::existing();
  if (process == nullptr) return -1;
  *counts = {sum(*process, [](const DeviceCounts& gpu) { return gpu.dispatches(); }),
             sum(*process, [](const DeviceCounts& gpu) { return gpu.others(); })};
  return 0;
}

UPTEMPO_VGPU_EXPORT int uptempo_vgpu_device(uptempo_vgpu_device_counts* counts) {
  const kfd::Process* const process = kfd::Process::existing();
  if (process == nullptr) return -1;
  const auto total = [&](auto count) { return sum(*process, count); };
  const bool incoherent = process->gpus().front()->caches != nullptr;  // like all others
  MovedLines lines;
  if (incoherent)
    for (const auto& gpu : process->gpus()) lines += gpu->caches->moved_lines();
  using Counts = DeviceCounts;
  *counts = {
      .packets = total([](const Counts& gpu) { return gpu.dispatches() + gpu.others(); }),
      .barrier_bits = total([](const Counts& gpu) { return gpu.barrier_bits(); }),
      .agent_acquires = total([](const Counts& gpu) { return gpu.acquires(FenceScope::agent); }),
      .system_acquires = total([](const Counts& gpu) { return gpu.acquires(FenceScope::system); }),
      .agent_releases = total([](const Counts& gpu) { return gpu.releases(FenceScope::agent); }),
      .system_releases = total([](const Counts& gpu) { return gpu.releases(FenceScope::system); }),
      .doorbells = total([](const Counts& gpu) { return gpu.doorbells(); }),
      .signal_updates = total([](const Counts& gpu) { return gpu.signal_updates(); }),
      .interrupts = total([](const Counts& gpu) { return gpu.interrupts(); }),
      .lines_counted = incoherent ? 1u : 0u,
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
  for (const auto& gpu : process->gpus()) {
    const kfd::SdmaLayout layout = kfd::sdma_layout(gpu->description());
    const uint32_t engines = layout.engines + layout.xgmi_engines;
    if (engine < engines) {
      *counts = {gpu->counts.copies(engine), gpu->counts.copied_bytes(engine)};
      return 0;
    }
    engine -= engines;
  }
  return -1;
}

UPTEMPO_VGPU_EXPORT int uptempo_vgpu_bar(uptempo_vgpu_bar_counts* counts) {
  const kfd::Process* const process = kfd::Process::existing();
  if (process == nullptr) return -1;
  const LazyBar* const bar = process->gpus().front()->lazy_bar.get();  // of the only GPU
  if (bar == nullptr) return -1;
  *counts = {.host_reads_of_device_memory = bar->host_reads(), .hdp_flushes = bar->hdp_flushes()};
  return 0;
}

UPTEMPO_VGPU_EXPORT int uptempo_vgpu_findings(uptempo_vgpu_finding_counts* counts) {
  const kfd::Process* const process = kfd::Process::existing();
  if (process == nullptr || process->checker() == nullptr) return -1;
  const auto found = process->checker()->counts();
  *counts = {found.unordered, found.stale, found.unreleased};
  for (const fences::Repeated& repeated : process->checker()->repeated()) {
    uint64_t& of_class = repeated.what == fences::Finding::Class::unordered ? counts->unordered
                         : repeated.what == fences::Finding::Class::stale   ? counts->stale
                                                                            : counts->unreleased;
    of_class += repeated.times - 1;
  }
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

UPTEMPO_VGPU_EXPORT int uptempo_vgpu_reset_gpu(uint32_t index) {
  kfd::Process* const process = kfd::Process::existing();
  return process != nullptr && process->reset_gpu(index) ? 0 : -1;
}

UPTEMPO_VGPU_EXPORT int uptempo_vgpu_injected(uint32_t rule,
                                              uptempo_vgpu_injection_counts* counts) {
  const kfd::Process* const process = kfd::Process::existing();
  if (process == nullptr) return -1;
  const Injector* const injector = process->injector();
  if (injector == nullptr || rule >= injector->rules().size()) return -1;
  const Injector::Counts found = injector->counts(rule);
  *counts = {.matched = found.matched, .injected = found.injected};
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

UPTEMPO_VGPU_EXPORT int uptempo_vgpu_report(int descriptor) {
  const kfd::Process* const process = kfd::Process::existing();
  if (process == nullptr) return -1;
  return process->write_hang_report(descriptor, "report, asked for by the program") ? 0 : -1;
}
