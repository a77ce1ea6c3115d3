// Copies to and from device variables, as copies of memory.
//
// Thread safety: any thread. Cost: HIP looks up the variable.
#pragma once

#include <cstddef>
#include <optional>

#include <uptempo/hip/api/hip_api.hpp>

namespace uptempo::graphs {

// Empty if HIP does not return the variable's address on the current device.
std::optional<hipMemcpy3DParms> copy_to_symbol(const void* symbol, const void* from, size_t bytes,
                                               size_t offset, hipMemcpyKind kind);
std::optional<hipMemcpy3DParms> copy_from_symbol(void* to, const void* symbol, size_t bytes,
                                                 size_t offset, hipMemcpyKind kind);

// Enters such a copy into the ledger, or that it is not known.
void enter(hipGraphNode_t node, const std::optional<hipMemcpy3DParms>& copy);

}  // namespace uptempo::graphs
