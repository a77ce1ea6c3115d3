#include "engine/memory/access.hpp"

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include <string>
#include <vector>

#include "engine/memory/pool.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo {
namespace {

bool can_reach(hsa_agent_t agent, const Agent& owner) {
  hsa_amd_memory_pool_access_t access{};
  check(hsa_amd_agent_memory_pool_get_info(agent, find_pool(owner, MemoryKind::device).handle,
                                           HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &access),
        "hsa_amd_agent_memory_pool_get_info", "an agent's access to device memory of another one");
  return access != HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED;
}

[[noreturn]] void throw_out_of_reach(const Agent& owner, const std::string& accessor) {
  throw Error({.status = HSA_STATUS_ERROR_INVALID_AGENT,
               .call = "allow_access",
               .asked = fmt::format("access to device memory of {} (node {})", owner.name(),
                                    owner.properties().node),
               .found = fmt::format("{} cannot access it", accessor),
               .remedy = "copy through host memory"});
}

void allow(const void* memory, const std::vector<hsa_agent_t>& agents) {
  check(hsa_amd_agents_allow_access(static_cast<uint32_t>(agents.size()), agents.data(), nullptr,
                                    memory),
        "hsa_amd_agents_allow_access",
        fmt::format("access to {} for {} agents", memory, agents.size()),
        "pass the address of an allocation of device memory");
}

}  // namespace

bool can_reach(const Agent& agent, const Agent& owner) { return can_reach(agent.handle(), owner); }

void allow_access(const Agent& owner, const void* memory, std::span<const Agent> agents) {
  std::vector<hsa_agent_t> handles;
  std::string refused;
  for (const Agent& agent : agents) {
    handles.push_back(agent.handle());
    if (!can_reach(agent, owner))
      refused += fmt::format("{}{} (node {})", refused.empty() ? "" : ", ", agent.name(),
                             agent.properties().node);
  }
  if (!refused.empty()) throw_out_of_reach(owner, refused);
  allow(memory, handles);
}

bool host_can_reach(const Agent& owner) {
  return can_reach(find_pool(owner, MemoryKind::pinned).owner, owner);
}

void allow_host_access(const Agent& owner, const void* memory) {
  const hsa_agent_t host = find_pool(owner, MemoryKind::pinned).owner;
  if (!can_reach(host, owner)) throw_out_of_reach(owner, "the host");
  allow(memory, {host});
}

}  // namespace uptempo
