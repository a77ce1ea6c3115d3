// Sources of the topology. Private to this folder and its tests.
//
// A thunk keeps one topology snapshot and one set of events per process, so the process must not
// open a second one. The build therefore uses hsakmt only if ROCr itself loads libhsakmt.so (Debian
// 12 and 13), and sets UPTEMPO_TOPOLOGY_HSAKMT. Newer ROCr contains the thunk and does not export
// it: the driver's files in sysfs are the source.
#pragma once

#include <string>
#include <vector>

#include "engine/topology/topology.hpp"

namespace uptempo::detail {

struct SysfsPlaces {
  std::string topology = "/sys/devices/virtual/kfd/kfd/topology";
  std::string render_nodes = "/dev/dri";
};

// Nodes have ROCr's numbers: a GPU whose render node is missing or denied by a control group is
// left out and not counted. Throws Error if a file is missing or unreadable.
std::vector<GpuTopology> sysfs_topology(const SysfsPlaces& places = {});

#ifdef UPTEMPO_TOPOLOGY_HSAKMT
std::vector<GpuTopology> hsakmt_topology();
#endif

}  // namespace uptempo::detail
