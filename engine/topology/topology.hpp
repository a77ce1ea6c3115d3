// GPU properties that the kernel driver knows and HSA does not expose: copy engines, hardware
// queues, doorbells, the budget of events.
//
// An optional component (target uptempo::topology). It reads hsakmt (ROCT) where ROCr loads that
// library, and the driver's files in sysfs where ROCr contains the thunk; the build decides. Each
// call reads a snapshot of the driver's topology and releases it. ROCr need not be running; if it
// runs, it is not disturbed.
//
// Thread safety: any thread, but not while another thread starts the first Runtime or ends the last
// one: hsakmt keeps one snapshot per process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace uptempo {

enum class DoorbellType : uint8_t {
  pre_1_0 = 0,    // 32-bit; takes the write index of a legacy queue
  version_1 = 1,  // 32-bit
  version_2 = 2,  // 64-bit; takes the index of the last packet
};

struct GpuTopology {
  uint32_t node = 0;         // AgentProperties::node
  uint32_t device_id = 0;    // PCI device id
  uint32_t bdf_id = 0;       // AgentProperties::bdf_id
  uint64_t unique_id = 0;    // number in AgentProperties::uuid; 0 if the driver does not report it
  std::string name;          // hsakmt's: "AMD Instinct MI210"; the driver's: "aldebaran"
  uint32_t gfx_version = 0;  // major * 10000 + minor * 100 + stepping: 90010 is gfx90a
  uint32_t sdma_engines = 0;
  uint32_t sdma_xgmi_engines = 0;
  uint32_t sdma_queues_per_engine = 0;
  uint32_t compute_queues = 0;  // hardware queues; more HSA queues than this share them in turn
  DoorbellType doorbell = DoorbellType::version_2;
  uint32_t lds_kib = 0;  // of a compute unit
  uint32_t simds = 0;
  uint64_t local_memory_bytes = 0;
  bool host_visible_memory = false;  // the host can access all of it: a large BAR
};

// Returns every GPU that the process may use. Throws Error if there is no driver or no permission
// to read its topology (no amdgpu driver, or not under uptempo-vgpu).
std::vector<GpuTopology> read_gpu_topology();
// Returns the GPU of that node. Throws Error, which lists the GPU nodes.
GpuTopology gpu_topology(uint32_t node);

// Signal events available to a process. Each interrupt signal takes one; ROCr takes a few for
// itself and one or two per queue. When none is left, ROCr returns signals that no thread can sleep
// on.
struct EventBudget {
  uint32_t limit = 4096;  // KFD_SIGNAL_EVENT_LIMIT of linux/kfd_ioctl.h; slot 0 is unused
  uint32_t usable = 4095;
};
EventBudget event_budget() noexcept;

}  // namespace uptempo
