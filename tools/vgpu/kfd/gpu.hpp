// One GPU of a process, as the driver has it: its identity, its memory and its device. Requests has
// one for each GPU of the machine (--gpus).
//
// Each GPU has an address space (page table), a render node, doorbells, counts and, from its first
// queue on, a command processor with threads of its own. Events, the trace and the reports belong
// to the process.
//
// Lifetime: that of the process's Requests, which Device and the threads refer to.
// Thread safety: immutable, except the parts that have their own rules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/bar/lazy_bar.hpp"
#include "device/caches/incoherent.hpp"
#include "device/device.hpp"
#include "device/device_counts.hpp"
#include "device/host/host_pages.hpp"
#include "device/host/host_stacks.hpp"
#include "device/ignored_atomics.hpp"
#include "kfd/events.hpp"
#include "kfd/machine/backing.hpp"
#include "kfd/machine/machine.hpp"

namespace uptempo::vgpu::kfd {

inline constexpr uint64_t kLargePage = uint64_t{2} << 20;  // the GPU's, in bytes

// Returns KFD's identifier of a GPU. The kernel uses a 16-bit hash; any nonzero value works.
constexpr uint32_t gpu_id_of(uint32_t index) noexcept { return 0x5a21 + index * 0x1000; }

// The parts that the GPUs of a process share.
struct ProcessParts {
  Machine& machine;
  Trace& trace;
  Events& events;
  GpuGroup& group;
  fences::Checker* checker = nullptr;             // null: fences are not checked
  races::Races* races = nullptr;                  // null: kernels are not checked for races
  HostStacks* host_stacks = nullptr;              // with any of the checkers
  HostPages* host_pages = nullptr;                // with the checker
  IgnoredAtomics* ignored_atomics = nullptr;      // null: not counted
  Injector* injector = nullptr;                   // with rules about the device
  std::function<void(bool gone)> gpu_lost{};      // called on a device thread
  memory_check::Checker* memory_check = nullptr;  // null: memory is not checked
};

// Adds the GPU's identity to what its threads raise.
class GpuInterrupts final : public Interrupts {
 public:
  GpuInterrupts(Events& events, uint32_t gpu_id, std::string gpu_name,
                std::function<void(bool gone)> gpu_lost);
  void raise(uint32_t event_id) override;
  void memory_fault(const MemoryFault& fault) override;
  void gpu_lost(bool gone) override;

 private:
  Events& events_;
  const uint32_t gpu_id_;
  const std::string gpu_name_;
  const std::function<void(bool gone)> gpu_lost_;
};

class Gpu {
 public:
  // `process`: the process's options.
  Gpu(const Options& process, uint32_t index, const ProcessParts& parts);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const uint32_t index;
  const uint32_t id;      // KFD's
  const Options options;  // of this GPU
  Machine& machine;
  SparseFile& render_file;  // the machine's memory of this GPU
  AddressSpace memory;
  const std::unique_ptr<Caches> caches;     // null: memory is coherent
  const std::unique_ptr<LazyBar> lazy_bar;  // null: the host's stores are visible at once
  DeviceCounts counts;
  GpuInterrupts interrupts;
  Device device;  // refers to the members above

  const DeviceDescription& description() const noexcept { return *options.device; }
  uint64_t vram_bytes() const noexcept { return options.device->vram_bytes; }
  uint64_t gtt_bytes() const noexcept { return machine.gtt_bytes(index); }
};

// Returns the memory of each GPU.
std::vector<Machine::GpuMemory> memory_of(const Options& options);
// Returns the options that all processes of a machine must have in common.
std::vector<Machine::Property> properties_of(const Options& options);

}  // namespace uptempo::vgpu::kfd
