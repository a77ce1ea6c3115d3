// Whether ROCr tells the mask of compute units that was set. ROCr 7.0 tells that of the queue's
// creation (AqlQueue::SetCUMasking returns before it keeps the mask).
#pragma once

#include <hsa/hsa_ext_amd.h>
#include <uptempo/runtime/agent.hpp>

#include "test/support/catch.hpp"

namespace uptempo::test {

inline bool rocr_tells_masks(const Agent& gpu) {
  hsa_queue_t* queue = nullptr;
  REQUIRE(hsa_queue_create(gpu.handle(), 64, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, UINT32_MAX,
                           UINT32_MAX, &queue) == HSA_STATUS_SUCCESS);
  const uint32_t asked = 0x3;
  uint32_t told = 0;
  CHECK(hsa_amd_queue_cu_set_mask(queue, 32, &asked) == HSA_STATUS_SUCCESS);
  CHECK(hsa_amd_queue_cu_get_mask(queue, 32, &told) == HSA_STATUS_SUCCESS);
  CHECK(hsa_queue_destroy(queue) == HSA_STATUS_SUCCESS);
  return told == asked;
}

}  // namespace uptempo::test
