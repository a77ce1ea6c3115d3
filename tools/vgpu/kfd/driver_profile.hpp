// The features of an amdgpu driver with KFD interface 1.`minor`. The list of versions is at the
// head of Linux's include/uapi/linux/kfd_ioctl.h; the version numbers below are from it.
//
// The profile hides what a driver of that age lacks. It does not add what the emulated driver lacks
// itself: SVM (1.5), SMI events (1.3) and checkpoints (1.7) are refused on every profile, as
// README.md says. The IPC requests of AMD's out-of-tree driver have no version; every profile has
// them.
#pragma once

#include <cstdint>

namespace uptempo::vgpu::kfd {

class DriverProfile {
 public:
  // `minor`: Options::kOldestKfd..kNewestKfd
  explicit constexpr DriverProfile(uint32_t minor) noexcept : minor_(minor) {}

  constexpr uint32_t major() const noexcept { return 1; }
  constexpr uint32_t minor() const noexcept { return minor_; }

  // AVAILABLE_MEMORY exists.
  constexpr bool tells_available_memory() const noexcept { return minor_ >= 9; }
  // EXPORT_DMABUF exists.
  constexpr bool exports_dmabufs() const noexcept { return minor_ >= 12; }
  // RUNTIME_ENABLE exists, queue errors are reported as exceptions once it was issued, and the
  // topology has the bits of the debugger and its firmware. ROCr waits for exceptions if it sees
  // the bits, so they come together.
  constexpr bool reports_exceptions() const noexcept { return minor_ >= 13; }
  // WAIT_EVENTS compares and returns the ages of events.
  constexpr bool compares_event_ages() const noexcept { return minor_ >= 14; }
  // CREATE_QUEUE accepts an SDMA engine.
  constexpr bool selects_sdma_engine() const noexcept { return minor_ >= 17; }

 private:
  uint32_t minor_;
};

}  // namespace uptempo::vgpu::kfd
