// The mask of compute units of a hardware queue. Private to engine/stream.
//
// Work-group processors: from gfx10 on, two compute units share one, and ROCr refuses a mask with
// one of the two (amd_aql_queue.cpp, SetCUMasking(); hsa_ext_amd.h, hsa_amd_queue_cu_set_mask()).
// Here, a bit of either sets both, as KFD does with such a mask (kfd_mqd_manager.c,
// mqd_symmetrically_map_cu_mask()).
// HSA_CU_MASK: ROCr removes the units that this environment variable disables, and reports
// HSA_STATUS_CU_MASK_REDUCED. That mask is accepted unless no unit is left, which would hang the
// queue.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/runtime/agent.hpp"

namespace uptempo::detail {

struct CuMask {
  std::vector<uint32_t> asked{}, used{};  // bit i of word i / 32: compute unit i; empty: all
  bool paired = false;                    // for work-group processors
  bool reduced = false;                   // HSA_CU_MASK disables some

  std::string describe() const;
};

// Sets the queue's mask. Empty: leaves it as it is. Throws Error if ROCr refuses the mask, and if
// no compute unit is left.
CuMask set_cu_mask(hsa_queue_t* queue, const Agent& agent, std::vector<uint32_t> asked);

}  // namespace uptempo::detail
