// What the driver holds for the program: holdings.h.
#include "holdings.h"

#include "interpose/real.hpp"
#include "kfd/process.hpp"

UPTEMPO_VGPU_EXPORT int uptempo_vgpu_holdings(uptempo_vgpu_holding_counts* counts) {
  const uptempo::vgpu::kfd::Process* const process = uptempo::vgpu::kfd::Process::existing();
  if (process == nullptr) return -1;
  const uptempo::vgpu::kfd::Holdings held = process->holdings();
  *counts = {.queues = held.queues,
             .signal_events = held.events.signal,
             .other_events = held.events.other,
             .buffers = held.memory.buffers,
             .vram_bytes = held.memory.vram_bytes,
             .gtt_bytes = held.memory.gtt_bytes,
             .userptr_bytes = held.memory.userptr_bytes};
  return 0;
}
