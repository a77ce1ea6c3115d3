#include <uptempo/hip/per_device.hpp>

#include <fmt/format.h>

#include <uptempo/runtime/error.hpp>

namespace uptempo::hip {

void check_device_number(int device) {
  if (device >= 0 && device < kMostDevices) return;
  throw Error({.code = ErrorCode::unavailable,
               .status = HSA_STATUS_ERROR_INVALID_AGENT,
               .call = "uptempo::hip",
               .asked = fmt::format("HIP device {}", device),
               .found = fmt::format("only devices below {} are supported", kMostDevices),
               .remedy = "limit the devices with HIP_VISIBLE_DEVICES"});
}

}  // namespace uptempo::hip
