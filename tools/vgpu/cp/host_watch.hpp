// Reports the host's accesses, which HostPages notices, to the fence checker. Does nothing while
// the checker is off.
//
// Thread safety: the command processor's thread, inside a section of the Reader. With several GPUs,
// each processor has such objects; Checker::section() lets one at a time report.
#pragma once

#include <array>

#include "device/device.hpp"
#include "device/fences/checker.hpp"
#include "device/host/host_pages.hpp"
#include "device/memory.hpp"

namespace uptempo::vgpu {

class HostWatch {
 public:
  HostWatch(Device& device, AddressSpace::Reader& memory);

  // Null: the host is not observed.
  HostPages* pages() const noexcept { return pages_; }
  // Whether the host's looks at signals are observed.
  bool waits() const noexcept { return waits_; }

  // Reports the accesses since the last call.
  void report();

 private:
  fences::Checker* const checker_;
  HostPages* const pages_;
  const bool waits_;
  bool misses_looks_ = false;
  const fences::Checker::KindOf kind_of_;  // of pages that the host has used
};

}  // namespace uptempo::vgpu
