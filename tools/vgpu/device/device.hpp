// The parts that all layers of the device use, created once per process by the emulated driver.
#pragma once

#include <atomic>

#include "device/interrupts.hpp"
#include "device/memory.hpp"
#include "device/options.hpp"
#include "device/trace.hpp"

namespace uptempo::vgpu {

class Caches;
class DeviceCounts;
class HostPages;
class IgnoredAtomics;
class LazyBar;
namespace fences {
class Checker;
}

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
  // RUNTIME_ENABLE was issued: queue errors are also exceptions (cp/queue_exception.hpp)
  std::atomic<bool> reports_exceptions{false};
};

}  // namespace uptempo::vgpu
