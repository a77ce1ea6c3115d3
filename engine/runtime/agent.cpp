#include <uptempo/runtime/agent.hpp>

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo {
namespace {

// hsa_ext_amd.h and hsa.h define attributes in different enumerations for one parameter type, hence
// int.
template <class T>
void get(hsa_agent_t agent, int attribute, T& out, const char* name) {
  check(hsa_agent_get_info(agent, static_cast<hsa_agent_info_t>(attribute), &out),
        "hsa_agent_get_info", name);
}

template <class T>
void get_optional(hsa_agent_t agent, int attribute, T& out) {
  T value{};
  if (hsa_agent_get_info(agent, static_cast<hsa_agent_info_t>(attribute), &value) ==
      HSA_STATUS_SUCCESS)
    out = value;
}

hsa_status_t append_isa(hsa_isa_t isa, void* data) {
  uint32_t length = 0;
  hsa_status_t status = hsa_isa_get_info_alt(isa, HSA_ISA_INFO_NAME_LENGTH, &length);
  if (status != HSA_STATUS_SUCCESS) return status;
  std::string name(length, '\0');
  status = hsa_isa_get_info_alt(isa, HSA_ISA_INFO_NAME, name.data());
  if (status != HSA_STATUS_SUCCESS) return status;
  name.resize(std::strlen(name.c_str()));  // the reported length includes the terminating zero
  static_cast<std::vector<std::string>*>(data)->push_back(std::move(name));
  return HSA_STATUS_SUCCESS;
}

hsa_status_t find_group_segment(hsa_amd_memory_pool_t pool, void* data) {
  hsa_amd_segment_t segment{};
  hsa_status_t status =
      hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment);
  if (status != HSA_STATUS_SUCCESS || segment != HSA_AMD_SEGMENT_GROUP) return status;
  size_t size_bytes = 0;
  status = hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SIZE, &size_bytes);
  *static_cast<uint32_t*>(data) = static_cast<uint32_t>(size_bytes);
  return status;
}

// ROCr writes one link, however many hops there are (amd_memory_region.cpp, GetAgentPoolInfo); the
// header promises one for each.
bool has_xgmi_link(hsa_agent_t gpu, hsa_amd_memory_pool_t pool) {
  uint32_t hops = 0;
  if (hsa_amd_agent_memory_pool_get_info(gpu, pool, HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS,
                                         &hops) != HSA_STATUS_SUCCESS ||
      hops == 0)
    return false;
  std::vector<hsa_amd_memory_pool_link_info_t> links(hops);
  return hsa_amd_agent_memory_pool_get_info(gpu, pool, HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO,
                                            links.data()) == HSA_STATUS_SUCCESS &&
         std::ranges::count(links, HSA_AMD_LINK_INFO_TYPE_XGMI,
                            &hsa_amd_memory_pool_link_info_t::link_type) != 0;
}

bool has_xgmi_to_host(hsa_agent_t gpu) {
  struct Search {
    hsa_agent_t gpu;
    bool found = false;
  } search{gpu};
  for (const hsa_agent_t agent : detail::all_agents()) {
    hsa_device_type_t type{};
    get(agent, HSA_AGENT_INFO_DEVICE, type, "HSA_AGENT_INFO_DEVICE");
    if (type != HSA_DEVICE_TYPE_CPU) continue;
    check(hsa_amd_agent_iterate_memory_pools(
              agent,
              [](hsa_amd_memory_pool_t pool, void* data) {
                auto& [from, found] = *static_cast<Search*>(data);
                found = found || has_xgmi_link(from, pool);
                return HSA_STATUS_SUCCESS;
              },
              &search),
          "hsa_amd_agent_iterate_memory_pools", "a host's agent");
  }
  return search.found;
}

AgentProperties read_properties(hsa_agent_t agent) {
  AgentProperties p;
  char name[64] = {};  // HSA_AGENT_INFO_NAME: char[64]
  get(agent, HSA_AGENT_INFO_NAME, name, "HSA_AGENT_INFO_NAME");
  p.name.assign(name, strnlen(name, sizeof name));
  get(agent, HSA_AGENT_INFO_DEVICE, p.type, "HSA_AGENT_INFO_DEVICE");
  get(agent, HSA_AGENT_INFO_NODE, p.node, "HSA_AGENT_INFO_NODE");
  std::array<char, 64> product{};  // HSA_AMD_AGENT_INFO_PRODUCT_NAME: char[64]
  get_optional(agent, HSA_AMD_AGENT_INFO_PRODUCT_NAME, product);
  p.product_name.assign(product.data(), strnlen(product.data(), product.size()));
  get_optional(agent, HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, p.compute_units);
  check(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &p.timestamp_hz),
        "hsa_system_get_info", "HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY");
  if (p.type != HSA_DEVICE_TYPE_GPU) return p;

  get(agent, HSA_AGENT_INFO_WAVEFRONT_SIZE, p.wavefront_size, "HSA_AGENT_INFO_WAVEFRONT_SIZE");
  get(agent, HSA_AGENT_INFO_WORKGROUP_MAX_SIZE, p.max_workgroup_size,
      "HSA_AGENT_INFO_WORKGROUP_MAX_SIZE");
  get(agent, HSA_AGENT_INFO_QUEUE_MIN_SIZE, p.queue_min_packets, "HSA_AGENT_INFO_QUEUE_MIN_SIZE");
  get(agent, HSA_AGENT_INFO_QUEUE_MAX_SIZE, p.queue_max_packets, "HSA_AGENT_INFO_QUEUE_MAX_SIZE");
  // Older headers lack its name.
  get_optional(agent, std::bit_cast<hsa_agent_info_t>(0xA119), p.pm4_emulation);
  // HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES; bit 0: HSA_AMD_MEMORY_PROPERTY_AGENT_IS_APU.
  std::array<uint8_t, 8> memory_properties{};
  get_optional(agent, std::bit_cast<hsa_agent_info_t>(0xA114), memory_properties);
  p.is_apu = (memory_properties[0] & 1) != 0;
  p.xgmi_to_host = has_xgmi_to_host(agent);
  get_optional(agent, HSA_AMD_AGENT_INFO_BDFID, p.bdf_id);
  get_optional(agent, HSA_AMD_AGENT_INFO_DOMAIN, p.domain);
  std::array<char, 21> uuid{};  // HSA_AMD_AGENT_INFO_UUID: char[21]
  get_optional(agent, HSA_AMD_AGENT_INFO_UUID, uuid);
  p.uuid.assign(uuid.data(), strnlen(uuid.data(), uuid.size()));
  if (p.uuid.ends_with("-XX")) p.uuid.clear();  // hsa_ext_amd.h: an agent without UUID
  check(hsa_amd_agent_iterate_memory_pools(agent, find_group_segment, &p.group_segment_bytes),
        "hsa_amd_agent_iterate_memory_pools", p.name);
  check(hsa_agent_iterate_isas(agent, append_isa, &p.isas), "hsa_agent_iterate_isas", p.name);
  return p;
}

}  // namespace

std::string name_and_node(const Agent& agent) {
  return fmt::format("{} (node {})", agent.name(), agent.properties().node);
}

std::string name_and_node(hsa_agent_t handle) {
  // A handle of an ended Runtime may point to freed memory, so it is only compared.
  std::vector<hsa_agent_t> agents;
  if (Session::running()) agents = detail::all_agents();
  return std::ranges::find(agents, handle.handle, &hsa_agent_t::handle) != agents.end()
             ? name_and_node(Agent(handle))
             : "an agent of an ended Runtime";
}

const char* detail::type_name(hsa_device_type_t type) noexcept {
  switch (type) {
    case HSA_DEVICE_TYPE_CPU:
      return "CPU";
    case HSA_DEVICE_TYPE_GPU:
      return "GPU";
    case HSA_DEVICE_TYPE_DSP:
      return "DSP";
    default:
      return nullptr;
  }
}

std::vector<hsa_agent_t> detail::all_agents() {
  std::vector<hsa_agent_t> agents;
  check(hsa_iterate_agents(
            [](hsa_agent_t agent, void* all) {
              static_cast<std::vector<hsa_agent_t>*>(all)->push_back(agent);
              return HSA_STATUS_SUCCESS;
            },
            &agents),
        "hsa_iterate_agents");
  return agents;
}

std::string pci_address(const AgentProperties& properties) {
  const uint32_t id = properties.bdf_id;
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", properties.domain, id >> 8 & 0xff, id >> 3 & 0x1f,
                     id & 7);
}

Agent::Agent(hsa_agent_t handle)
    : handle_(handle),
      properties_(std::make_shared<const AgentProperties>(read_properties(handle))) {}

const std::string& Agent::isa() const {
  if (properties_->isas.empty()) {
    throw Error({.code = ErrorCode::argument,
                 .status = HSA_STATUS_ERROR_INVALID_ISA,
                 .call = "Agent::isa",
                 .asked = fmt::format("the instruction set of agent {}", name()),
                 .found = "the agent has none",
                 .remedy = "use a GPU agent"});
  }
  return properties_->isas.front();
}

}  // namespace uptempo
