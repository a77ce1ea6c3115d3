#include <uptempo/hip/device.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <uptempo/hip/device_agent.hpp>
#include <uptempo/hip/per_device.hpp>
#include <uptempo/hip/status.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo::hip {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

// HIP's text for a device's place on the PCI bus, and whether its last digit is the function's bits
// of the agent. HIP before 6.2 always writes 0 (hip_device_runtime.cpp, hipDeviceGetPCIBusId()).
struct Place {
  std::string address;
  bool has_function = false;

  explicit Place(int device) {
    std::array<char, 32> text{};
    check(hipDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), device),
          "hipDeviceGetPCIBusId", fmt::format("HIP device {}", device),
          "pass a device number below hipGetDeviceCount()");
    address = lower(text.data());
    int version = 0;
    check(hipRuntimeGetVersion(&version), "hipRuntimeGetVersion");
    constexpr int kFirstWithFunction = 60'200'000;  // as HIP_VERSION
    has_function = version >= kFirstWithFunction;
  }

  bool is_of(const Agent& gpu) const {
    const std::string theirs = pci_address(gpu.properties());
    const size_t length = has_function ? std::string::npos : address.rfind('.');
    return theirs.substr(0, length) == address.substr(0, length);
  }
};

// HIP has the 16 digits of the agent's UUID (rocdevice.cpp, populateOCLDeviceConstants()).
std::string uuid_of(int device) {
  hipUUID uuid{};
  check(hipDeviceGetUuid(&uuid, device), "hipDeviceGetUuid", fmt::format("HIP device {}", device));
  return "gpu-" + lower({uuid.bytes, sizeof uuid.bytes});
}

std::string list(std::span<const Agent> agents) {
  std::string text;
  for (const Agent& agent : agents)
    text += fmt::format("{}{} ({}, {})", text.empty() ? "" : ", ", name_and_node(agent),
                        pci_address(agent.properties()), agent.properties().uuid);
  return text;
}

// Partitions of one card share the place on the bus but for the function's bits, and with older
// drivers also the UUID.
Agent find(std::span<const Agent> gpus, int device) {
  const Place place(device);
  std::vector<Agent> there;
  std::ranges::copy_if(gpus, std::back_inserter(there),
                       [&](const Agent& gpu) { return place.is_of(gpu); });
  if (there.size() > 1) {
    const std::string uuid = uuid_of(device);
    std::vector<Agent> same;
    std::ranges::copy_if(there, std::back_inserter(same),
                         [&](const Agent& gpu) { return lower(gpu.properties().uuid) == uuid; });
    if (!same.empty()) there = same;
  }
  if (there.size() == 1) return there.front();
  throw Error(
      {.code = ErrorCode::unavailable,
       .status = HSA_STATUS_ERROR_INVALID_AGENT,
       .call = "hip::agent",
       .asked = fmt::format("the agent of HIP device {} at PCI address {}", device, place.address),
       .found = there.empty() ? fmt::format("none of the {} GPU agents is there", gpus.size())
                              : fmt::format("{} agents: {}", there.size(), list(there)),
       .remedy = there.empty() ? "check ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES"
                               : "select one partition with ROCR_VISIBLE_DEVICES, or use "
                                 "HIP 6.2 or newer, which tells partitions apart"});
}

std::vector<Agent> gpu_agents() {
  detail::require_one_rocr("uptempo::hip");
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
