// Agent: an HSA agent, either a device that executes AQL packets (a GPU) or the host. Holds the
// handle and the properties, which are read once.
//
// Thread safety: immutable.
// Lifetime: a value; a copy shares the properties, and a move copies. Properties stay readable
// after the Runtime ends; the handle becomes invalid.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace uptempo {

struct AgentProperties {
  std::string name;          // "gfx90a"
  std::string product_name;  // "AMD Instinct MI210"; empty if the driver does not report it
  hsa_device_type_t type = HSA_DEVICE_TYPE_CPU;
  // "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", preferred one first.
  std::vector<std::string> isas;
  uint32_t node = 0;  // driver's node number
  uint32_t compute_units = 0;
  uint32_t wavefront_size = 0;       // lanes
  uint32_t max_workgroup_size = 0;   // work-items
  uint32_t group_segment_bytes = 0;  // LDS of a compute unit
  uint32_t queue_min_packets = 0;
  uint32_t queue_max_packets = 0;
  // ROCr turns the packets of this agent's queues into PM4 when HSA's functions store the doorbell
  // (HSA_AMD_AGENT_INFO_PM4_EMULATION). False where ROCr does not know the question.
  bool pm4_emulation = false;
  // The GPU has no memory of its own: it uses the host's (HSA_AMD_MEMORY_PROPERTY_AGENT_IS_APU).
  // False where ROCr does not know the question (hsa_ext_amd.h before 1.5).
  bool is_apu = false;
  // A link between the GPU and the memory of a CPU agent is xGMI, not PCIe: the MI300A, and boards
  // with gfx90a that are wired so (Linux, kfd_crat.c, kfd_fill_gpu_direct_io_link_to_cpu()).
  bool xgmi_to_host = false;
  // PCI bus, device, function: bus << 8 | device << 3 | function. KFD puts the number of an MI300's
  // partition into the function's bits (kfd_topology.c, kfd_topology_add_device()).
  uint32_t bdf_id = 0;
  uint32_t domain = 0;  // PCI domain
  // "GPU-0123456789abcdef"; empty if the device has none. Partitions of one card share it, except
  // with drivers from November 2025 on (amdgpu_xcp.c, __amdgpu_xcp_set_unique_id()).
  std::string uuid;
  // Frequency of hsa_amd_profiling_* times, which use the system clock domain.
  uint64_t timestamp_hz = 0;
};

// The device's place on the PCI bus as lspci writes it, "0000:03:00.0". The last digit of a
// partition is its number: "0000:03:00.1" is the card's second one, and no PCI function.
std::string pci_address(const AgentProperties& properties);

class Agent;
// "gfx90a (node 1)": also tells two agents of one target apart.
std::string name_and_node(const Agent& agent);
// The same for a handle that may be of an ended Runtime; then it says so.
std::string name_and_node(hsa_agent_t handle);

class Agent {
 public:
  // Reads all properties. Throws Error if HSA does not report a mandatory one.
  explicit Agent(hsa_agent_t handle);
  // No move: every Agent has properties.
  Agent(const Agent&) noexcept = default;
  Agent& operator=(const Agent&) noexcept = default;

  hsa_agent_t handle() const noexcept { return handle_; }
  const AgentProperties& properties() const noexcept { return *properties_; }
  const std::string& name() const noexcept { return properties_->name; }
  const std::string& isa() const;  // the preferred one; throws Error if the agent has none
  bool is_gpu() const noexcept { return properties_->type == HSA_DEVICE_TYPE_GPU; }

  friend bool operator==(const Agent& a, const Agent& b) noexcept {
    return a.handle_.handle == b.handle_.handle;
  }

 private:
  hsa_agent_t handle_;
  std::shared_ptr<const AgentProperties> properties_;
};

namespace detail {
// Every agent of HSA. Throws Error.
std::vector<hsa_agent_t> all_agents();
// "CPU", "GPU" or "DSP"; null for a type of newer ROCr (HSA_DEVICE_TYPE_AIE), whose agents need not
// have the properties that Agent reads.
const char* type_name(hsa_device_type_t type) noexcept;
}  // namespace detail

// The memory model of an agent: properties of its caches by which the engine leaves fences out.
//
//   const MemoryModel& model = memory_model(agent);
//   print(model.name, model.proved, describe(model));

// A row of the table: one for each group of targets with the same caches. Each property that is
// true makes some fences superfluous; none makes all of them necessary.
struct MemoryModel {
  std::string_view name;  // "gfx900 to gfx90a", "gfx942 APU", "gfx103x"; "unknown target"
  // The sources state every property that is true for these targets, and the effect of packet
  // fences. If false, the sources only suggest the properties, no report from hardware confirms
  // them, and the engine keeps every fence. No row has been checked on hardware yet.
  bool proved = false;
  // The agent has one L2. A dispatch that overwrites the results of another then needs only to come
  // after it. Several L2s write the same bytes back in any order.
  bool one_l2 = false;
  // L2 does not hold host memory that is fine-grained, kernargs among it. An acquire of agent scope
  // then suffices for what the host has written there.
  bool host_memory_bypasses_l2 = false;
  // A store of the host or a copy engine to device memory invalidates copies in L2. An acquire
  // of agent scope then suffices for it, too.
  bool device_memory_is_probed = false;
  std::string_view source;  // public documents and files

  // The properties that fences depend on: those of a proved row, otherwise none.
  constexpr MemoryModel rules() const noexcept { return proved ? *this : MemoryModel{}; }

  friend constexpr bool operator==(const MemoryModel&, const MemoryModel&) = default;
};

// The row of an agent with these properties: it depends on name, is_apu and xgmi_to_host. An
// unknown target has a row that assumes nothing.
const MemoryModel& memory_model(const AgentProperties& agent) noexcept;
inline const MemoryModel& memory_model(const Agent& agent) noexcept {
  return memory_model(agent.properties());
}

// The row in words: name, what it assumes, whether fences depend on it, and the source.
std::string describe(const MemoryModel& model);

// Whether L2 may hold old bytes of memory for kernel arguments after the host has written them
// anew, so that only an acquire of system scope suffices. `on_device`: device memory; otherwise
// fine-grained host memory.
constexpr bool kernargs_go_stale_in_l2(const MemoryModel& model, bool on_device) noexcept {
  const MemoryModel rules = model.rules();
  return on_device ? !rules.device_memory_is_probed : !rules.host_memory_bypasses_l2;
}
// Null: a queue without ROCr, whose arguments are in host memory that no L2 holds.
inline bool kernargs_go_stale_in_l2(const Agent* agent, bool on_device) noexcept {
  return agent != nullptr && kernargs_go_stale_in_l2(memory_model(*agent), on_device);
}

}  // namespace uptempo
