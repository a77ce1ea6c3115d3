// The processor sockets of the virtual machine: how the host's processors and memory are divided
// among them, and the NUMA nodes in /sys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "interpose/tree.hpp"

namespace uptempo::vgpu::interpose {

struct Socket {
  std::vector<uint32_t> processors;  // the host's numbers; empty if it has fewer than sockets
  // APIC id of the first processor. ROCT matches it with /proc/cpuinfo to find the CPU's name
  // (topology.c:893).
  uint64_t apic_id = 0;
  uint64_t cores = 1;  // of KFD's topology, where a node without cores is no CPU agent
  uint64_t memory_bytes = 0;
};

// Divides the processors in order, and the memory equally in whole pages.
std::vector<Socket> divide_host(uint32_t sockets);

// Distance between two NUMA nodes as ACPI's SLIT reports it: 10 for the node itself, and 32 for the
// other socket of an EPYC machine with one node per socket (`numactl --hardware`). ROCT takes more
// than 20 for another socket (topology.c, get_indirect_iolink_info at 5.2.3).
uint64_t numa_distance(uint32_t from, uint32_t to);

// Adds /sys/devices/system/node: the files that libnuma and hwloc read
// (Documentation/ABI/stable/sysfs-devices-node).
void add_numa_nodes(Tree& tree, const std::vector<Socket>& sockets);

// Lists of processors as sysfs writes them: "0-1,4", and "00000013".
std::string processor_list(const std::vector<uint32_t>& processors);
std::string processor_mask(const std::vector<uint32_t>& processors);

}  // namespace uptempo::vgpu::interpose
