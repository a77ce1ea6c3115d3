#include "test/engine/faults/packets.hpp"

#include <fmt/format.h>

#include <cstring>

namespace uptempo::faults {
namespace {

std::array<std::byte, 64> line_at(uint64_t address) {
  std::array<std::byte, 64> line;
  std::memcpy(line.data(), reinterpret_cast<const void*>(address), line.size());
  return line;
}

}  // namespace

void PacketReferences::add(const hsa_queue_t& queue, uint64_t begin, uint64_t end) {
  for (uint64_t index = begin; index < end; ++index) {
    // A barrier packet has its completion signal at the same offset, and its first dependency where
    // a dispatch has its kernel. The engine's batches contain dispatches without dependencies.
    hsa_kernel_dispatch_packet_t packet;
    std::memcpy(
        &packet,
        static_cast<const std::byte*>(queue.base_address) + index % queue.size * sizeof packet,
        sizeof packet);
    if (packet.completion_signal.handle != 0) signals_.insert(packet.completion_signal.handle);
    const auto kernargs = reinterpret_cast<uint64_t>(packet.kernarg_address);
    if (packet.kernel_object != 0 && kernargs != 0) kernargs_.emplace(kernargs, line_at(kernargs));
  }
}

PacketReferences PacketReferences::of(const hsa_queue_t& queue) {
  PacketReferences all;
  all.add(queue, 0, hsa_queue_load_write_index_relaxed(&queue));
  return all;
}

std::string PacketReferences::misuse(const PacketReferences& others) const {
  std::string found;
  for (const auto& [address, line] : kernargs_) {
    if (others.kernargs_.contains(address))
      found += fmt::format("kernarg block {:#x} was given to another packet. ", address);
    else if (line_at(address) != line)
      found += fmt::format("kernarg block {:#x} was written to. ", address);
  }
  for (const uint64_t signal : signals_)
    if (others.signals_.contains(signal))
      found += fmt::format("signal {:#x} was given to another packet. ", signal);
  return found;
}

std::string PacketReferences::text() const {
  return fmt::format("{} blocks, {} signals", kernargs_.size(), signals_.size());
}

}  // namespace uptempo::faults
