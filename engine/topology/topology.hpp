// GPU properties that the kernel driver knows and HSA does not expose: copy engines, hardware
// queues, doorbells.
//
// An optional component (target uptempo::topology). It reads the driver's files in sysfs. ROCr need
// not be running; if it runs, it is not disturbed.
//
// Thread safety: any thread.
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
  uint32_t node = 0;       // AgentProperties::node
  uint32_t device_id = 0;  // PCI device id
  uint32_t bdf_id = 0;     // AgentProperties::bdf_id
  uint64_t unique_id = 0;  // number in AgentProperties::uuid; 0 if the driver does not report it
  std::string name{};      // the chip's: "aldebaran"; AgentProperties::product_name is the board's
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

namespace detail {

// The same from other folders than KFD's topology and /dev/dri. Nodes have ROCr's numbers: a GPU
// whose render node is missing or denied by a control group is left out and not counted. Throws
// Error if a file is missing or unreadable.
std::vector<GpuTopology> read_topology(const std::string& topology,
                                       const std::string& render_nodes);

}  // namespace detail
}  // namespace uptempo
