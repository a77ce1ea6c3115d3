#include <fmt/format.h>
#include <hsakmt.h>

#include <cstring>

#include "engine/runtime/error.hpp"
#include "engine/topology/sources.hpp"

namespace uptempo::detail {
namespace {

void check_kmt(HSAKMT_STATUS status, const char* call) {
  if (status == HSAKMT_STATUS_SUCCESS) return;
  throw Error(
      {.status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
       .call = call,
       .asked = "the driver's topology",
       .found = fmt::format("hsakmt status {}", static_cast<int>(status)),
       .remedy = "check that /dev/kfd exists and is accessible, or run under uptempo-vgpu"});
}

// Opens the driver and takes hsakmt's topology snapshot. hsakmt keeps one snapshot per process.
// Taking another one leaks the old one (topology.c, topology_take_snapshot). So this class uses
// ROCr's snapshot if there is one, and otherwise releases its own at the end.
class Snapshot {
 public:
  Snapshot() {
    const HSAKMT_STATUS opened = hsaKmtOpenKFD();
    if (opened != HSAKMT_STATUS_KERNEL_ALREADY_OPENED) check_kmt(opened, "hsaKmtOpenKFD");
    if (HsaNodeProperties first{}; hsaKmtGetNodeProperties(0, &first) == HSAKMT_STATUS_SUCCESS)
      return;
    HsaSystemProperties system{};
    if (const HSAKMT_STATUS acquired = hsaKmtAcquireSystemProperties(&system);
        acquired != HSAKMT_STATUS_SUCCESS) {
      hsaKmtCloseKFD();
      check_kmt(acquired, "hsaKmtAcquireSystemProperties");
    }
    acquired_ = true;
  }
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  ~Snapshot() {
    if (acquired_) hsaKmtReleaseSystemProperties();
    hsaKmtCloseKFD();
  }

 private:
  bool acquired_ = false;
};

std::string marketing_name(const HsaNodeProperties& p) {
  std::string name;
  for (const HSAuint16 c : p.MarketingName) {
    if (c == 0) break;
    name += static_cast<char>(c);
  }
  if (!name.empty()) return name;
  const char* const amd = reinterpret_cast<const char*>(p.AMDName);
  return std::string(amd, strnlen(amd, sizeof p.AMDName));
}

GpuTopology describe(uint32_t node, const HsaNodeProperties& p) {
  GpuTopology gpu;
  gpu.node = node;
  gpu.device_id = p.DeviceId;
  gpu.bdf_id = p.LocationId;
  gpu.unique_id = p.UniqueID;
  gpu.name = marketing_name(p);
  gpu.gfx_version =
      p.EngineId.ui32.Major * 10000 + p.EngineId.ui32.Minor * 100 + p.EngineId.ui32.Stepping;
  gpu.sdma_engines = p.NumSdmaEngines;
  gpu.sdma_xgmi_engines = p.NumSdmaXgmiEngines;
  gpu.sdma_queues_per_engine = p.NumSdmaQueuesPerEngine;
  gpu.compute_queues = p.NumCpQueues;
  gpu.doorbell = static_cast<DoorbellType>(p.Capability.ui32.DoorbellType);
  gpu.lds_kib = p.LDSSizeInKB;
  gpu.simds = p.NumFComputeCores;
  std::vector<HsaMemoryProperties> banks(p.NumMemoryBanks);
  check_kmt(hsaKmtGetNodeMemoryProperties(node, p.NumMemoryBanks, banks.data()),
            "hsaKmtGetNodeMemoryProperties");
  for (const HsaMemoryProperties& bank : banks) {
    const bool host_visible = bank.HeapType == HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC;
    if (!host_visible && bank.HeapType != HSA_HEAPTYPE_FRAME_BUFFER_PRIVATE) continue;
    gpu.local_memory_bytes += bank.SizeInBytes;
    gpu.host_visible_memory = host_visible;
  }
  return gpu;
}

}  // namespace

std::vector<GpuTopology> hsakmt_topology() {
  const Snapshot snapshot;
  std::vector<GpuTopology> gpus;
  for (uint32_t node = 0;; ++node) {
    HsaNodeProperties properties{};
    const HSAKMT_STATUS status = hsaKmtGetNodeProperties(node, &properties);
    if (status == HSAKMT_STATUS_INVALID_NODE_UNIT) break;  // past the last node
    check_kmt(status, "hsaKmtGetNodeProperties");
    if (properties.NumFComputeCores != 0) gpus.push_back(describe(node, properties));
  }
  return gpus;
}

}  // namespace uptempo::detail
