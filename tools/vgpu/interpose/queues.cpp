// How the device calls a queue of the program: queues.h.
#include "queues.h"

#include <optional>

#include "interpose/real.hpp"
#include "kfd/process.hpp"

UPTEMPO_VGPU_EXPORT int uptempo_vgpu_queue(const void* ring, uint32_t* number) {
  const uptempo::vgpu::kfd::Process* const process = uptempo::vgpu::kfd::Process::existing();
  if (process == nullptr) return -1;
  const std::optional<uint32_t> ordinal =
      process->queue_with_ring(reinterpret_cast<uint64_t>(ring));
  if (!ordinal) return -1;
  *number = *ordinal;
  return 0;
}
