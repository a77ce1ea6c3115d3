// Completed packets, as far as the program is concerned: counts.h.
#include "counts.h"

#include "interpose/real.hpp"
#include "kfd/process.hpp"

UPTEMPO_VGPU_EXPORT int uptempo_vgpu_packets(uptempo_vgpu_packet_counts* counts) {
  const uptempo::vgpu::kfd::Process* const process = uptempo::vgpu::kfd::Process::existing();
  if (process == nullptr) return -1;
  *counts = {process->packets().dispatches(), process->packets().others()};
  return 0;
}
