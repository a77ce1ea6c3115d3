#include "test/engine/runtime/replaced_agent.hpp"

#include <dlfcn.h>

#include <cstdint>
#include <cstring>

namespace uptempo::test {

AgentFacts& reported_facts() {
  static AgentFacts facts;
  return facts;
}

}  // namespace uptempo::test

namespace {

using uptempo::test::AgentFacts;
using uptempo::test::reported_facts;

constexpr int kMemoryProperties = 0xA114;  // HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES: uint8_t[8]

decltype(&hsa_agent_get_info) real_get_info() {
  static const auto real =
      reinterpret_cast<decltype(&hsa_agent_get_info)>(dlsym(RTLD_NEXT, "hsa_agent_get_info"));
  return real;
}

bool is_gpu(hsa_agent_t agent) {
  hsa_device_type_t type{};
  return real_get_info()(agent, HSA_AGENT_INFO_DEVICE, &type) == HSA_STATUS_SUCCESS &&
         type == HSA_DEVICE_TYPE_GPU;
}

}  // namespace

extern "C" hsa_status_t hsa_agent_get_info(hsa_agent_t agent, hsa_agent_info_t attribute,
                                           void* value) {
  const AgentFacts& facts = reported_facts();
  const int number = attribute;
  if (number == kMemoryProperties && is_gpu(agent)) {
    if (!facts.is_apu) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    std::memset(value, 0, 8);
    *static_cast<uint8_t*>(value) = 1;
    return HSA_STATUS_SUCCESS;
  }
  if (number == HSA_AGENT_INFO_NAME && !facts.name.empty() && is_gpu(agent)) {
    std::memset(value, 0, 64);
    std::memcpy(value, facts.name.data(), facts.name.size());
    return HSA_STATUS_SUCCESS;
  }
  return real_get_info()(agent, attribute, value);
}

extern "C" hsa_status_t hsa_amd_agent_memory_pool_get_info(
    hsa_agent_t agent, hsa_amd_memory_pool_t pool, hsa_amd_agent_memory_pool_info_t attribute,
    void* value) {
  static const auto real = reinterpret_cast<decltype(&hsa_amd_agent_memory_pool_get_info)>(
      dlsym(RTLD_NEXT, "hsa_amd_agent_memory_pool_get_info"));
  const hsa_status_t status = real(agent, pool, attribute, value);
  if (reported_facts().xgmi_to_host && attribute == HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO &&
      status == HSA_STATUS_SUCCESS && is_gpu(agent))
    static_cast<hsa_amd_memory_pool_link_info_t*>(value)->link_type = HSA_AMD_LINK_INFO_TYPE_XGMI;
  return status;
}
