#include "cp/report/queued_stores.hpp"

#include <optional>

#include "cp/packet/sdma_ranges.hpp"

namespace uptempo::vgpu {
namespace {

bool overlap(const sdma::Range& stored, const sdma::Range& awaited) noexcept {
  return stored.address < awaited.address + awaited.bytes &&
         awaited.address < stored.address + stored.bytes;
}

bool stores_to(const sdma::Decoded& packet, const sdma::Range& awaited) {
  if (const auto* fence = std::get_if<sdma::Fence>(&packet.packet))
    return overlap({fence->address, sizeof fence->value}, awaited);
  if (const auto* time = std::get_if<sdma::Timestamp>(&packet.packet))
    return overlap({time->address, sizeof(uint64_t)}, awaited);
  bool found = false;
  sdma::for_ranges(packet, [&](const std::optional<sdma::Range>&, const sdma::Range& stored) {
    found = found || overlap(stored, awaited);
  });
  return found;
}

}  // namespace

std::vector<QueuedStore> queued_stores(std::span<const QueueSnapshot* const> queues,
                                       GpuAddress address, uint64_t bytes) {
  std::vector<QueuedStore> found;
  for (const QueueSnapshot* queue : queues)
    for (const QueuedCopy& copy : queue->copies)
      if (stores_to(copy.packet, {address, bytes})) found.push_back({queue, &copy});
  return found;
}

}  // namespace uptempo::vgpu
