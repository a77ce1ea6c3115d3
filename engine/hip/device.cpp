#include "engine/hip/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "engine/hip/status.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo::hip {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

}  // namespace

Agent agent(const Runtime& runtime, int device) {
  std::array<char, 32> place{};
  check(hipDeviceGetPCIBusId(place.data(), static_cast<int>(place.size()), device),
        "hipDeviceGetPCIBusId", fmt::format("HIP device {}", device),
        "pass a device number below hipGetDeviceCount()");
  const std::string address = lower(place.data());
  std::optional<Agent> found;
  size_t count = 0;
  for (const Agent& gpu : runtime.gpus()) {
    if (pci_address(gpu.properties()) != address) continue;
    ++count;
    found = gpu;
  }
  if (count == 1) return *found;
  throw Error(
      {.status = HSA_STATUS_ERROR_INVALID_AGENT,
       .call = "hip::agent",
       .asked = fmt::format("the agent of HIP device {} at PCI address {}", device, address),
       .found = fmt::format("{} of the {} GPU agents are there", count, runtime.gpus().size()),
       .remedy = count == 0 ? "check ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES"
                            : "select the agent of the partition with Runtime::gpu()"});
}

Agent agent(const Runtime& runtime) {
  int device = 0;
  check(hipGetDevice(&device), "hipGetDevice");
  return agent(runtime, device);
}

}  // namespace uptempo::hip
