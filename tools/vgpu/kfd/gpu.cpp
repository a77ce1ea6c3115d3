#include "kfd/gpu.hpp"

#include <unistd.h>
#include <utility>

namespace uptempo::vgpu::kfd {
namespace {

// The driver's limit for GTT is the machine's memory.
uint64_t gtt_limit_bytes() {
  const uint64_t bytes =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (bytes + kLargePage - 1) / kLargePage * kLargePage;
}

}  // namespace

GpuInterrupts::GpuInterrupts(Events& events, uint32_t gpu_id, std::string gpu_name,
                             std::function<void(bool gone)> gpu_lost)
    : events_(events),
      gpu_id_(gpu_id),
      gpu_name_(std::move(gpu_name)),
      gpu_lost_(std::move(gpu_lost)) {}

void GpuInterrupts::raise(uint32_t event_id) { events_.raise(event_id); }

void GpuInterrupts::memory_fault(const MemoryFault& fault) {
  events_.memory_fault(fault, gpu_id_, gpu_name_);
}

void GpuInterrupts::gpu_lost(bool gone) { gpu_lost_(gone); }

Gpu::Gpu(const Options& process, uint32_t index_, const ProcessParts& parts)
    : index(index_),
      id(gpu_id_of(index)),
      options(process.of_gpu(index)),
      machine(parts.machine),
      render_file(machine.file(index)),
      caches(options.incoherent
                 ? std::make_unique<Caches>(*options.device,
                                            CacheHabits::of(*options.device, *options.incoherent))
                 : nullptr),
      lazy_bar(options.lazy_bar ? std::make_unique<LazyBar>(*options.lazy_bar, parts.injector)
                                : nullptr),
      interrupts(parts.events, id, options.gpus.size() < 2 ? "GPU" : "GPU " + std::to_string(index),
                 parts.gpu_lost),
      device{
          options,          memory,       interrupts,     parts.trace,           parts.checker,
          parts.host_pages, caches.get(), &counts,        parts.ignored_atomics, lazy_bar.get(),
          &parts.group,     index,        parts.injector, parts.host_stacks,     parts.memory_check,
          parts.races} {}

std::vector<Machine::GpuMemory> memory_of(const Options& options) {
  std::vector<Machine::GpuMemory> memory;
  for (const DeviceDescription* gpu : options.gpus)
    memory.push_back({.vram_bytes = gpu->vram_bytes, .gtt_bytes = gtt_limit_bytes()});
  return memory;
}

std::vector<Machine::Property> properties_of(const Options& options) {
  std::string gpus;
  for (const DeviceDescription* gpu : options.gpus) {
    if (!gpus.empty()) gpus += ',';
    gpus += gpu->target;
  }
  return {{"--gpus", gpus},
          {"--partitions", options.partitions == Options::Partitions::none      ? "of no card"
                           : options.partitions == Options::Partitions::same_id ? "same-id"
                                                                                : "own-id"},
          {"--kfd", "1." + std::to_string(options.kfd_minor)},
          {"--bar", options.small_bar ? "small" : "large"},
          {"--sockets", std::to_string(options.sockets.count)},
          {"--gpu-socket",
           options.sockets.gpu_given ? std::to_string(options.sockets.of_gpu) : "of the default"}};
}

}  // namespace uptempo::vgpu::kfd
