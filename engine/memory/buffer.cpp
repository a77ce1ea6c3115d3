#include <uptempo/memory/buffer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <uptempo/memory/pool.hpp>
#include <uptempo/runtime/amd_extension.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo {
namespace {

using detail::can_access;

std::string names_of(std::span<const Agent> agents) {
  if (agents.size() == 1) return agents.front().name();
  std::string names;
  for (const Agent& agent : agents)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_and_node(agent));
  return names;
}

// Names the system's limit of mappings if the process has reached it: then neither the driver nor
// ROCr maps any more memory, however much is free.
std::string mappings_text() {
  // ROCr may have freed some of them when it gave up.
  constexpr size_t kNear = 64;
  size_t most = 0, mappings = 0;
  if (!(std::ifstream("/proc/sys/vm/max_map_count") >> most)) return {};
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++mappings;
  if (mappings + kNear < most) return {};
  return fmt::format(
      "; the process has {} mappings, of at most {} (vm.max_map_count): raise that limit, or make "
      "fewer and larger buffers",
      mappings, most);
}

// True if the driver says that it has less than that for the GPU, where ROCr must not be asked in
// vain. ROCr might have found the memory in a block that it keeps for small allocations, or in its
// own caches: the price of not ending with SIGSEGV.
bool must_not_ask(hsa_agent_t gpu, size_t size_bytes) {
  constexpr uint32_t kAvailable = 0xA015;  // HSA_AMD_AGENT_INFO_MEMORY_AVAIL
  uint64_t available = 0;
  return reads_destroyed_queues() &&
         hsa_agent_get_info(gpu, std::bit_cast<hsa_agent_info_t>(kAvailable), &available) ==
             HSA_STATUS_SUCCESS &&
         size_bytes > available;
}

// An allocation's agents, as ROCr knows them.
struct Holders {
  hsa_agent_t owner{};
  uint32_t count = 0;
  std::unique_ptr<hsa_agent_t, decltype(&std::free)> agents{nullptr, &std::free};

  std::span<const hsa_agent_t> accessors() const noexcept { return {agents.get(), count}; }
};

Holders holders_of(const void* memory) {
  Holders holders;
  hsa_amd_pointer_info_t info{};
  info.size = sizeof info;
  hsa_agent_t* agents = nullptr;
  const hsa_status_t status =
      hsa_amd_pointer_info(const_cast<void*>(memory), &info, &std::malloc, &holders.count, &agents);
  holders.agents.reset(agents);
  check(status, "hsa_amd_pointer_info",
        [&] { return fmt::format("the agents that may access {}", memory); });
  holders.owner = info.agentOwner;
  return holders;
}

bool can_reach(hsa_agent_t agent, const Agent& owner) {
  return can_access(agent, find_pool(owner, MemoryKind::device).handle);
}

bool is_gpu(hsa_agent_t agent) {
  hsa_device_type_t type{};
  return agent.handle != 0 &&
         hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type) == HSA_STATUS_SUCCESS &&
         type == HSA_DEVICE_TYPE_GPU;
}

[[noreturn]] void refuse_access(ErrorCode code, const Agent& owner, std::string found,
                                std::string remedy) {
  throw Error({.code = code,
               .status = HSA_STATUS_ERROR_INVALID_AGENT,
               .call = "allow_access",
               .asked = fmt::format("access to memory of {}", name_and_node(owner)),
               .found = std::move(found),
               .remedy = std::move(remedy)});
}

[[noreturn]] void refuse_distant(const Agent& owner, std::string_view agents) {
  refuse_access(ErrorCode::unavailable, owner, fmt::format("{} cannot access it", agents),
                "copy through host memory");
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

std::string_view name_of(MemoryKind kind) noexcept {
  switch (kind) {
    case MemoryKind::device:
      return "device memory";
    case MemoryKind::pinned:
      return "pinned host memory";
    case MemoryKind::pinned_coarse:
      return "coarse-grained pinned host memory";
    case MemoryKind::kernarg:
      return "kernarg memory";
  }
  return "memory";
}

Allocation::Allocation(std::span<const Agent> gpus, MemoryKind kind, size_t size_bytes)
    : size_bytes_(size_bytes) {
  const auto refuse = [&](hsa_status_t status, const char* call, std::string found,
                          std::string remedy) {
    throw Error({.code = code_of(status),
                 .status = status,
                 .call = call,
                 .asked = fmt::format("{} bytes of {} for agent {}", size_bytes, name_of(kind),
                                      gpus.empty() ? "none" : names_of(gpus)),
                 .found = std::move(found),
                 .remedy = std::move(remedy)});
  };
  if (gpus.empty())
    refuse(HSA_STATUS_ERROR_INVALID_ARGUMENT, "Allocation", "an empty list of GPUs",
           "name at least one GPU: the owner of device memory, or one near the host memory");
  gpu_ = gpus.front().handle();
  std::shared_ptr<Session> session = Session::current();
  const MemoryPool pool = find_pool(gpus.front(), kind);
  std::vector<hsa_agent_t> agents;
  std::string distant;
  for (const Agent& agent : gpus) {
    agents.push_back(agent.handle());
    if (!can_access(agent.handle(), pool.handle))
      distant += fmt::format("{}{}", distant.empty() ? "" : ", ", name_and_node(agent));
  }
  if (!distant.empty())
    refuse(HSA_STATUS_ERROR_INVALID_AGENT, "Allocation",
           fmt::format("{} cannot access that memory pool", distant),
           "leave these agents out, and copy through memory that they can access");
  if (size_bytes == 0)
    refuse(HSA_STATUS_ERROR_INVALID_ARGUMENT, "Allocation", "a size of zero",
           "request at least one byte");
  void* data = nullptr;
  const hsa_status_t status = kind == MemoryKind::device && must_not_ask(gpu_, size_bytes)
                                  ? HSA_STATUS_ERROR_OUT_OF_RESOURCES
                                  : hsa_amd_memory_pool_allocate(pool.handle, size_bytes, 0, &data);
  if (status != HSA_STATUS_SUCCESS)
    refuse(status, "hsa_amd_memory_pool_allocate",
           fmt::format("the pool of {} bytes, at most {} at a time, has too little memory{}",
                       pool.size_bytes, pool.max_allocation_bytes, mappings_text()),
           "free buffers or request less");
  owned_ = Owned(
      std::move(session), Session::Kind::memory, reinterpret_cast<uint64_t>(data),
      [](uint64_t handle) noexcept { hsa_amd_memory_pool_free(reinterpret_cast<void*>(handle)); });
  // Replaces the set of agents; the pool's own agent keeps its access.
  if (kind != MemoryKind::device || gpus.size() > 1) allow(data, agents);
  detail::count(&detail::CounterBlock::memory_allocations);
  if (kind == MemoryKind::kernarg) detail::count(&detail::CounterBlock::kernarg_allocations);
}

size_t detail::bytes_for(size_t count, size_t element_bytes) {
  if (count <= std::numeric_limits<size_t>::max() / element_bytes) return count * element_bytes;
  throw Error({.code = ErrorCode::argument,
               .status = HSA_STATUS_ERROR_INVALID_ALLOCATION,
               .call = "buffer",
               .asked = fmt::format("{} elements of {} bytes", count, element_bytes),
               .found = "more than the address space holds",
               .remedy = "request fewer elements"});
}

bool can_reach(const Agent& agent, const Agent& owner) { return can_reach(agent.handle(), owner); }

bool host_can_reach(const Agent& owner) {
  return can_reach(find_pool(owner, MemoryKind::pinned).owner, owner);
}

void allow_access(const Agent& owner, const void* memory, std::span<const Agent> agents) {
  // The owner, too: for host memory it is an agent like any other, which the call would replace.
  std::vector<hsa_agent_t> handles{owner.handle()};
  std::string distant;
  const hsa_agent_t holder = holders_of(memory).owner;
  const bool is_device_memory = holder.handle == owner.handle().handle;
  if (!is_device_memory && is_gpu(holder))
    refuse_access(ErrorCode::argument, owner,
                  fmt::format("{} is memory of {}", memory, name_and_node(holder)),
                  "pass the agent that the memory was made for");
  for (const Agent& agent : agents) {
    if (agent == owner) continue;
    handles.push_back(agent.handle());
    if (is_device_memory && !can_reach(agent, owner))
      distant += fmt::format("{}{}", distant.empty() ? "" : ", ", name_and_node(agent));
  }
  if (!distant.empty()) refuse_distant(owner, distant);
  allow(memory, handles);
}

void allow_host_access(const Agent& owner, const void* memory) {
  const hsa_agent_t host = find_pool(owner, MemoryKind::pinned).owner;
  if (!can_reach(host, owner)) refuse_distant(owner, "the host");
  // The agents that have access keep it. ROCr's list of them may lack the host.
  std::vector<hsa_agent_t> handles{host};
  const Holders before = holders_of(memory);
  for (const hsa_agent_t agent : before.accessors())
    if (agent.handle != host.handle) handles.push_back(agent);
  allow(memory, handles);
}

bool has_access(hsa_agent_t agent, const void* memory) {
  return std::ranges::count(holders_of(memory).accessors(), agent.handle, &hsa_agent_t::handle) !=
         0;
}

}  // namespace uptempo
