// The links between the nodes of KFD's topology.
//
// Nodes are the sockets and, after them, the GPUs. Links are those that Linux builds (kfd_crat.c,
// kfd_topology.c): PCI Express from each GPU to its socket, xGMI between GPUs of one hive
// (device/hives.hpp), and indirect ones over the host: to the other sockets, and to each GPU
// outside the hive.
#pragma once

#include <cstdint>
#include <vector>

#include "device/options.hpp"

namespace uptempo::vgpu::interpose {

struct Link {
  uint64_t type;  // CRAT_IOLINK_TYPE_*
  uint64_t from, to;
  uint64_t weight;
  uint64_t min_mb_per_s, max_mb_per_s;
  uint64_t flags;  // CRAT_IOLINK_FLAGS_*
};

struct NodeLinks {
  std::vector<Link> direct;    // io_links
  std::vector<Link> indirect;  // p2p_links
};

NodeLinks links_of(uint32_t node, const Options& options);

}  // namespace uptempo::vgpu::interpose
