#include "engine/memory/access.hpp"

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/memory/pool.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo {
namespace {

// Frees what hsa_amd_pointer_info() allocates.
struct Accessors {
  Accessors() = default;
  Accessors(const Accessors&) = delete;
  Accessors& operator=(const Accessors&) = delete;
  ~Accessors() { std::free(agents); }
  std::span<const hsa_agent_t> span() const noexcept { return {agents, count}; }
  uint32_t count = 0;
  hsa_agent_t* agents = nullptr;
};

hsa_amd_pointer_info_t look_up(const void* memory, Accessors& accessors) {
  hsa_amd_pointer_info_t info{};
  info.size = sizeof info;
  check(hsa_amd_pointer_info(const_cast<void*>(memory), &info, &std::malloc, &accessors.count,
                             &accessors.agents),
        "hsa_amd_pointer_info",
        [&] { return fmt::format("the agents that may access {}", memory); });
  return info;
}

bool can_reach(hsa_agent_t agent, const Agent& owner) {
  hsa_amd_memory_pool_access_t access{};
  check(hsa_amd_agent_memory_pool_get_info(agent, find_pool(owner, MemoryKind::device).handle,
                                           HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &access),
        "hsa_amd_agent_memory_pool_get_info", "an agent's access to device memory of another one");
  return access != HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED;
}

bool is_gpu(hsa_agent_t agent) {
  hsa_device_type_t type{};
  return agent.handle != 0 &&
         hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type) == HSA_STATUS_SUCCESS &&
         type == HSA_DEVICE_TYPE_GPU;
}

[[noreturn]] void throw_out_of_reach(const Agent& owner, const std::string& accessor) {
  throw Error({.status = HSA_STATUS_ERROR_INVALID_AGENT,
               .call = "allow_access",
               .asked = fmt::format("access to memory of {}", name_and_node(owner)),
               .found = fmt::format("{} cannot access it", accessor),
               .remedy = "copy through host memory"});
}

void allow(const void* memory, const std::vector<hsa_agent_t>& agents) {
  check(
      hsa_amd_agents_allow_access(static_cast<uint32_t>(agents.size()), agents.data(), nullptr,
                                  memory),
      "hsa_amd_agents_allow_access",
      [&] { return fmt::format("access to {} for {} agents", memory, agents.size()); },
      "pass the address of an allocation of device or pinned memory");
}

}  // namespace

bool can_reach(const Agent& agent, const Agent& owner) { return can_reach(agent.handle(), owner); }

void allow_access(const Agent& owner, const void* memory, std::span<const Agent> agents) {
  // The owner, too: for host memory it is an agent like any other, which the call would replace.
  std::vector<hsa_agent_t> handles{owner.handle()};
  std::string refused;
  Accessors before;
  const hsa_agent_t holder = look_up(memory, before).agentOwner;
  const bool is_device_memory = holder.handle == owner.handle().handle;
  if (!is_device_memory && is_gpu(holder))
    throw Error({.status = HSA_STATUS_ERROR_INVALID_AGENT,
                 .call = "allow_access",
                 .asked = fmt::format("access to memory of {}", name_and_node(owner)),
                 .found = fmt::format("{} is memory of {}", memory, name_and_node(holder)),
                 .remedy = "pass the agent that the memory was made for"});
  for (const Agent& agent : agents) {
    if (agent == owner) continue;
    handles.push_back(agent.handle());
    if (is_device_memory && !can_reach(agent, owner))
      refused += fmt::format("{}{}", refused.empty() ? "" : ", ", name_and_node(agent));
  }
  if (!refused.empty()) throw_out_of_reach(owner, refused);
  allow(memory, handles);
}

bool has_access(hsa_agent_t agent, const void* memory) {
  Accessors accessors;
  (void)look_up(memory, accessors);
  return std::ranges::any_of(accessors.span(),
                             [&](hsa_agent_t accessor) { return accessor.handle == agent.handle; });
}

void detail::refuse_access(const Agent& agent, const void* memory, hsa_agent_t owner,
                           const char* call, const std::string& asked) {
  throw Error({.status = HSA_STATUS_ERROR_INVALID_AGENT,
               .call = call,
               .asked = asked,
               .found = fmt::format("{} may not access the memory of {} at {}",
                                    name_and_node(agent), name_and_node(owner), memory),
               .remedy = "make the buffer for both agents, or call allow_access() for it; where an "
                         "agent cannot reach the other, copy through host memory"});
}

bool host_can_reach(const Agent& owner) {
  return can_reach(find_pool(owner, MemoryKind::pinned).owner, owner);
}

void allow_host_access(const Agent& owner, const void* memory) {
  const hsa_agent_t host = find_pool(owner, MemoryKind::pinned).owner;
  if (!can_reach(host, owner)) throw_out_of_reach(owner, "the host");
  // The agents that have access keep it. ROCr's list of them may lack the host.
  Accessors before;
  look_up(memory, before);
  std::vector<hsa_agent_t> handles{host};
  for (const hsa_agent_t agent : before.span())
    if (agent.handle != host.handle) handles.push_back(agent);
  allow(memory, handles);
}

}  // namespace uptempo
