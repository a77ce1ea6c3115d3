// The end of tests that use ROCr without the engine.
#pragma once

#include <hsa/hsa.h>

#include <uptempo/runtime/amd_extension.hpp>

namespace uptempo::test {

// hsa_shut_down(), except with ROCr 6.1, where it can hang or abort: must_stay_initialised().
inline hsa_status_t end_hsa() noexcept {
  return must_stay_initialised() ? HSA_STATUS_SUCCESS : hsa_shut_down();
}

}  // namespace uptempo::test
