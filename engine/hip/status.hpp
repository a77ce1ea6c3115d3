// Turns failures of HIP functions into Error. Private to engine/hip.
//
// Thread safety: pure functions.
#pragma once

#include <string_view>

#include <uptempo/hip/api/hip_api.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo::hip {

using uptempo::check;  // statuses of HSA

[[noreturn]] void throw_status(hipError_t status, std::string_view call, std::string_view asked,
                               std::string_view remedy);

// Throws Error unless `status` is hipSuccess. `call`: the HIP function. Builds no string on
// success.
inline void check(hipError_t status, std::string_view call, std::string_view asked = {},
                  std::string_view remedy = {}) {
  if (status != hipSuccess) [[unlikely]]
    throw_status(status, call, asked, remedy);
}

}  // namespace uptempo::hip
