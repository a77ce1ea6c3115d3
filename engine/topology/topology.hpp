// What HSA does not expose of a GPU and the kernel driver knows: copy engines, hardware queues, doorbells, the budget of events.
//
// An optional component (target uptempo::topology), because it links hsakmt (ROCT) beside HSA. Read from a snapshot of the driver's topology
// that lasts for the call only.
//
// Thread safety: any thread, but not while another starts or ends the first or last Runtime: hsakmt keeps one snapshot for the process. ROCr
// need not be running, and is not disturbed if it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace uptempo {

enum class DoorbellType : uint8_t {
  pre_1_0 = 0,    // 32-bit, takes the write index of a legacy queue
  version_1 = 1,  // 32-bit
  version_2 = 2,  // 64-bit: takes the index of the last packet
};

struct GpuTopology {
  uint32_t node = 0;         // AgentProperties::node
  uint32_t device_id = 0;    // PCI
  uint32_t bdf_id = 0;       // AgentProperties::bdf_id
  uint64_t unique_id = 0;    // of the board; 0 where the driver does not say
  std::string name;          // the driver's: "aldebaran"
  uint32_t gfx_version = 0;  // major * 10000 + minor * 100 + stepping: 90010 is gfx90a
  uint32_t sdma_engines = 0;
  uint32_t sdma_xgmi_engines = 0;
  uint32_t sdma_queues_per_engine = 0;
  uint32_t compute_queues = 0;  // hardware queues; more HSA queues than these take turns
  DoorbellType doorbell = DoorbellType::version_2;
  uint32_t lds_kib = 0;  // of a compute unit
  uint32_t simds = 0;
  uint64_t local_memory_bytes = 0;
  bool host_visible_memory = false;  // all of it: a large BAR
};

// Every GPU of the machine. Throws Error if the driver cannot be opened (no amdgpu, no rights, not under uptempo-vgpu).
std::vector<GpuTopology> read_gpu_topology();
// The GPU of that node. Throws Error that lists the nodes there are.
GpuTopology gpu_topology(uint32_t node);

// Signal events that a process may have; each interrupt signal takes one, and ROCr takes some for itself (a few for its own signals, one or
// two for each queue). Past them ROCr hands out signals that nobody can sleep on.
struct EventBudget {
  uint32_t limit = 4096;  // KFD_SIGNAL_EVENT_LIMIT of linux/kfd_ioctl.h; slot 0 is unused
  uint32_t usable = 4095;
};
EventBudget event_budget() noexcept;

}  // namespace uptempo
