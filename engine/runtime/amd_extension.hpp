// The version of the AMD extension that the running ROCr implements. Private: it tells ROCr
// releases apart where they behave differently and the HSA interface version is the same.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <compare>
#include <cstdint>

namespace uptempo {

// HSA_AMD_INTERFACE_VERSION_* of ROCr's hsa_ext_amd.h. ROCr answers the query from 6.1, which has
// 1.4; 6.2 has 1.6, and 6.4 has 1.7.
struct AmdExtensionVersion {
  unsigned major = 0, minor = 0;
  friend constexpr auto operator<=>(const AmdExtensionVersion&,
                                    const AmdExtensionVersion&) = default;
};

// Returns 0.0 for a ROCr before 6.1. HSA must be initialised.
inline AmdExtensionVersion running_amd_extension() noexcept {
  // HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR and _MINOR, which older hsa.h lacks.
  constexpr auto kMajor = static_cast<hsa_system_info_t>(0x207);
  constexpr auto kMinor = static_cast<hsa_system_info_t>(0x208);
  uint16_t major = 0, minor = 0;
  if (hsa_system_get_info(kMajor, &major) != HSA_STATUS_SUCCESS ||
      hsa_system_get_info(kMinor, &minor) != HSA_STATUS_SUCCESS)
    return {};
  return {major, minor};
}

// True for ROCr 6.1 and newer. Older ones do not ask the driver for its event about the loss of a
// GPU (HSA_EVENTTYPE_HW_EXCEPTION). HSA must be initialised.
inline bool reports_lost_gpus() noexcept {
  return running_amd_extension() >= AmdExtensionVersion{1, 4};
}

// True for ROCr 6.1. Its hsa_shut_down locks an agent's mutex after destroying it: scratch_lock_ of
// GpuAgent is declared after queues_, whose destructors take it (amd_gpu_agent.h at rocm-6.1.2).
// The process can then hang or abort. HSA must be initialised.
inline bool must_stay_initialised() noexcept {
  return running_amd_extension() == AmdExtensionVersion{1, 4};
}

// Set when a queue was destroyed, in any thread.
inline constinit std::atomic<bool> has_destroyed_queue{false};
// True if the engine has destroyed a queue, with ROCr 6.1 and newer: after the end of a Runtime
// that left HSA initialised. If the driver refuses memory of a GPU, ROCr reads all queues that the
// GPU ever had, destroyed ones included, before it tries again: GpuAgent::aql_queues_ keeps them
// (amd_gpu_agent.cpp at rocm-6.1.2; mended by ROCm/rocm-systems pull request 6631 of June 2026,
// which no version number tells). The process can then end with SIGSEGV. HSA must be initialised.
inline bool reads_destroyed_queues() noexcept {
  return has_destroyed_queue.load(std::memory_order_relaxed) &&
         running_amd_extension() >= AmdExtensionVersion{1, 4};
}

// True for ROCr 6.4 and newer. There hsa_amd_signal_wait_any keeps the satisfying value in a heap
// block for one value, and stores it at the index of the signal (hsa_ext_amd.cpp:618 and
// signal.cpp, WaitMultiple, at 6.4.3; so still in August 2025). Any signal but the first thus
// overwrites the heap. HSA must be initialised.
inline bool wait_any_overflows() noexcept {
  return running_amd_extension() >= AmdExtensionVersion{1, 7};
}

}  // namespace uptempo
