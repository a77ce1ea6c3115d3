// The version of the AMD extension that the running ROCr implements. Private: it tells ROCr
// releases apart where they behave differently and the HSA interface version is the same.
#pragma once

#include <compare>

namespace uptempo {

// HSA_AMD_INTERFACE_VERSION_* of ROCr's hsa_ext_amd.h. ROCr answers the query from 6.1, which has
// 1.4; 6.2 has 1.6.
struct AmdExtensionVersion {
  unsigned major = 0, minor = 0;
  friend constexpr auto operator<=>(const AmdExtensionVersion&,
                                    const AmdExtensionVersion&) = default;
};

// Returns 0.0 for a ROCr before 6.1. HSA must be initialised.
AmdExtensionVersion running_amd_extension() noexcept;

// True for ROCr 6.1. Its hsa_shut_down locks an agent's mutex after destroying it: scratch_lock_ of
// GpuAgent is declared after queues_, whose destructors take it (amd_gpu_agent.h at rocm-6.1.2).
// The process can then hang or abort. HSA must be initialised.
bool must_stay_initialised() noexcept;

}  // namespace uptempo
