// The parts that all layers of a device use. The emulated driver creates one for each GPU of the
// process.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "device/interrupts.hpp"
#include "device/memory.hpp"
#include "device/options.hpp"
#include "device/trace.hpp"

namespace uptempo::vgpu {

class Caches;
class DeviceCounts;
class HostPages;
class IgnoredAtomics;
class Injector;
class LazyBar;
class HostStacks;
namespace fences {
class Checker;
}
namespace memory_check {
class Checker;
}
namespace races {
class Races;
}

// The state that the devices of one process share.
struct GpuGroup {
  std::atomic<uint32_t> last_queue{0};  // the number of queues created so far
};

struct Device {
  const Options& options;
  AddressSpace& memory;
  Interrupts& interrupts;
  Trace& trace;
  fences::Checker* checker = nullptr;         // null: off
  HostPages* host_pages = nullptr;            // with the checker; null: the host is not observed
  Caches* caches = nullptr;                   // of an incoherent device
  DeviceCounts* counts = nullptr;             // null: not incoherent
  IgnoredAtomics* ignored_atomics = nullptr;  // null: not counted
  LazyBar* lazy_bar = nullptr;                // null: the host's stores are visible at once
  GpuGroup* group = nullptr;                  // null: a device of its own
  uint32_t gpu = 0;                           // its number in the process, from 0
  Injector* injector = nullptr;               // null: no rule of --inject is about the device
  HostStacks* host_stacks = nullptr;          // with the checkers; null: stacks are not kept
  memory_check::Checker* memory_check = nullptr;  // null: memory is not checked
  races::Races* races = nullptr;                  // null: kernels are not checked for races
  // RUNTIME_ENABLE was issued: queue errors are also exceptions (cp/queue_exception.hpp)
  std::atomic<bool> reports_exceptions{false};
  // Returns the source line of an instruction, "sort.hip:12", or an empty text. Any thread, not
  // inside a Reader's section: it may take seconds. Null: there are none.
  std::function<std::string(GpuAddress pc)> source_line{};
};

// Returns whether something sees every access to memory.
inline bool is_observed(const Device& device) noexcept {
  return device.checker != nullptr || device.memory_check != nullptr || device.races != nullptr;
}

// Returns whether texts must say which GPU they are about.
inline bool is_one_of_several(const Device& device) noexcept {
  return device.options.gpus.size() > 1;
}

}  // namespace uptempo::vgpu
