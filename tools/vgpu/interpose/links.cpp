#include "interpose/links.hpp"

#include <algorithm>

#include "device/hives.hpp"
#include "interpose/sockets.hpp"

namespace uptempo::vgpu::interpose {
namespace {

constexpr uint64_t kHyperTransport = 1;  // CRAT_IOLINK_TYPE_HYPERTRANSPORT: between AMD's sockets
constexpr uint64_t kPciExpress = 2;      // CRAT_IOLINK_TYPE_PCIEXPRESS
constexpr uint64_t kXgmi = 11;           // CRAT_IOLINK_TYPE_XGMI
constexpr uint64_t kEnabled = 1;         // CRAT_IOLINK_FLAGS_ENABLED
constexpr uint64_t kNonCoherent = 2;     // CRAT_IOLINK_FLAGS_NON_COHERENT
constexpr uint64_t kPciExpressWeight = 20;
constexpr uint64_t kXgmiWeight = 15;  // of one hop: KFD_CRAT_XGMI_WEIGHT
constexpr uint64_t kPciExpressLeastMbPerS = 312;

// Boards with enough links are linked to each other, others form a ring.
uint32_t hops(const HivePlace& one, const HivePlace& other, uint32_t links_of_board) {
  if (links_of_board + 1 >= one.boards) return 1;
  const uint32_t distance =
      one.position < other.position ? other.position - one.position : one.position - other.position;
  return std::min(distance, one.boards - distance);
}

// The link between two GPUs, if they have one (kfd_fill_gpu_xgmi_link_to_gpu(),
// kfd_add_peer_prop()).
void add_link_to_peer(NodeLinks& links, uint32_t gpu, uint32_t peer, const Options& options) {
  const DeviceDescription& board = *options.gpus[gpu];
  const uint64_t from = options.sockets.count + gpu, to = options.sockets.count + peer;
  const auto here = hive_place(gpu, options), there = hive_place(peer, options);
  if (here && there && here->hive == there->hive) {
    // On GC 9.4.0 xGMI is not coherent either (kfd_set_iolink_non_coherent()).
    const uint64_t flags = kEnabled | (board.target == "gfx906" ? kNonCoherent : 0);
    links.direct.push_back({kXgmi, from, to, kXgmiWeight * hops(*here, *there, board.xgmi_links),
                            board.xgmi_mb_per_s, board.xgmi_mb_per_s, flags});
    return;
  }
  if (options.small_bar) return;  // amdgpu_device_is_peer_accessible()
  const uint32_t socket = options.socket_of_gpu(gpu), peer_socket = options.socket_of_gpu(peer);
  Link link{kPciExpress,
            from,
            to,
            2 * kPciExpressWeight,
            kPciExpressLeastMbPerS,
            board.host_link_mb_per_s,
            kEnabled | kNonCoherent};
  if (socket != peer_socket) {  // the link between sockets has no rate
    link.weight += numa_distance(socket, peer_socket);
    link.min_mb_per_s = 0;
    link.max_mb_per_s = 0;
  }
  links.indirect.push_back(link);
}

// The link between a socket and a GPU, in the direction of `node`. An indirect one is a PCI Express
// link and a link between sockets, with both weights together and no rate
// (kfd_create_indirect_link_prop()).
void add_host_link(NodeLinks& links, uint32_t from, uint32_t to, const Options& options) {
  const uint32_t sockets = options.sockets.count;
  const uint32_t socket = std::min(from, to), gpu = std::max(from, to) - sockets;
  const uint32_t of_gpu = options.socket_of_gpu(gpu);
  if (socket == of_gpu) {
    links.direct.push_back({kPciExpress, from, to, kPciExpressWeight, kPciExpressLeastMbPerS,
                            options.gpus[gpu]->host_link_mb_per_s, kEnabled});
  } else {
    links.indirect.push_back(
        {kPciExpress, from, to, kPciExpressWeight + numa_distance(socket, of_gpu), 0, 0, kEnabled});
  }
}

}  // namespace

// With a small BAR no link leads from the host to a GPU: Linux makes a GPU's link bidirectional,
// and indirect links from sockets, only for a large one.
NodeLinks links_of(uint32_t node, const Options& options) {
  const uint32_t sockets = options.sockets.count;
  const auto nodes = static_cast<uint32_t>(sockets + options.gpus.size());
  NodeLinks links;
  for (uint32_t to = 0; to < nodes; ++to) {
    if (to == node) continue;
    if (node < sockets && to < sockets) {
      links.direct.push_back({kHyperTransport, node, to, numa_distance(node, to), 0, 0, kEnabled});
    } else if (node >= sockets && to >= sockets) {
      add_link_to_peer(links, node - sockets, to - sockets, options);
    } else if (node >= sockets || !options.small_bar) {
      add_host_link(links, node, to, options);
    }
  }
  return links;
}

}  // namespace uptempo::vgpu::interpose
