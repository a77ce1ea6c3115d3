#include <uptempo/hip/status.hpp>

#include <fmt/format.h>

#include <uptempo/runtime/error.hpp>

namespace uptempo::hip {

void throw_status(hipError_t status, std::string_view call, std::string_view asked,
                  std::string_view remedy) {
  throw Error({.code = ErrorCode::hsa,
               .status = HSA_STATUS_ERROR,
               .call = std::string(call),
               .asked = std::string(asked),
               .found = fmt::format("{} ({})", hipGetErrorName(status), hipGetErrorString(status)),
               .remedy = std::string(remedy)});
}

}  // namespace uptempo::hip
