#include "engine/hip/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/hip/device_agent.hpp"
#include "engine/hip/per_device.hpp"
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

Agent find(std::span<const Agent> gpus, int device) {
  std::array<char, 32> place{};
  check(hipDeviceGetPCIBusId(place.data(), static_cast<int>(place.size()), device),
        "hipDeviceGetPCIBusId", fmt::format("HIP device {}", device),
        "pass a device number below hipGetDeviceCount()");
  const std::string address = lower(place.data());
  std::optional<Agent> found;
  size_t count = 0;
  for (const Agent& gpu : gpus) {
    if (pci_address(gpu.properties()) != address) continue;
    ++count;
    found = gpu;
  }
  if (count == 1) return *found;
  throw Error(
      {.status = HSA_STATUS_ERROR_INVALID_AGENT,
       .call = "hip::agent",
       .asked = fmt::format("the agent of HIP device {} at PCI address {}", device, address),
       .found = fmt::format("{} of the {} GPU agents are there", count, gpus.size()),
       .remedy = count == 0 ? "check ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES"
                            : "select the agent of the partition with Runtime::gpu()"});
}

std::vector<Agent> gpu_agents() {
  std::vector<hsa_agent_t> handles;
  check(hsa_iterate_agents(
            [](hsa_agent_t agent, void* data) {
              hsa_device_type_t type{};
              const hsa_status_t status = hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
              if (status == HSA_STATUS_SUCCESS && type == HSA_DEVICE_TYPE_GPU)
                static_cast<std::vector<hsa_agent_t>*>(data)->push_back(agent);
              return status;
            },
            &handles),
        "hsa_iterate_agents");
  std::vector<Agent> agents;
  agents.reserve(handles.size());
  for (const hsa_agent_t handle : handles) agents.emplace_back(handle);
  return agents;
}

int current_device() {
  int device = 0;
  check(hipGetDevice(&device), "hipGetDevice");
  return device;
}

}  // namespace

const Agent& agent_of(int device) {
  static constinit PerDevice<const Agent> all;
  return all.of(
      device, [](int number) { return std::make_unique<const Agent>(find(gpu_agents(), number)); });
}

const Agent& current_agent() { return agent_of(current_device()); }

Agent agent(const Runtime& runtime, int device) { return find(runtime.gpus(), device); }

Agent agent(const Runtime& runtime) { return agent(runtime, current_device()); }

}  // namespace uptempo::hip
