// The parameters of memcpy and memset nodes as transfers. Private to engine/hip.
//
// Rules, as in HIP: widths of a copy are bytes, those of a fill are elements; positions along x are
// bytes; a pitch of 0 is the width, and a height (ysize) of 0 that of the copy; the direction of a
// copy follows from its addresses.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <uptempo/hip/api/hip_api.hpp>
#include <uptempo/hip/graph/graph_memory.hpp>
#include <uptempo/stream/copy/transfer_kernels.hpp>

namespace uptempo::hip {

// A node's transfer, with the host's or the device's addresses, as HIP takes them. `node`: for
// errors, "node 3 (memcpy)". Throw Error for parameters that HIP would refuse, and for hipArrays.
detail::TransferBox transfer_of(const hipMemcpy3DParms& parameters, const std::string& node);
detail::TransferBox transfer_of(const hipMemsetParams& parameters, const std::string& node);
// 16 bytes of the value.
std::array<uint64_t, 2> pattern_of(const hipMemsetParams& parameters) noexcept;

// The bytes from the first to the last one that a transfer of transfer_of() accesses.
GraphRange target_of(const detail::TransferBox& box, const std::string& node);
GraphRange source_of(const detail::TransferBox& box, const std::string& node);

}  // namespace uptempo::hip
