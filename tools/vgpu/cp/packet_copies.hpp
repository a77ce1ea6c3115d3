// GPU-visible copies of dispatch packets whose ring slots have been given back before their kernels ended (--early-read-index).
//
// A kernel reads its packet through dispatch_ptr for as long as it runs, so a slot that the producer may overwrite cannot serve it.
//
// Thread safety: none; it belongs to the command processor's thread.
#pragma once

#include <hsa/hsa.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "device/memory.hpp"

namespace uptempo::vgpu {

class PacketCopies {
 public:
  // With `enabled`, maps read-only memory for the copies into the GPU's address space, at its own host address.
  PacketCopies(AddressSpace& memory, bool enabled);
  ~PacketCopies();
  PacketCopies(const PacketCopies&) = delete;
  PacketCopies& operator=(const PacketCopies&) = delete;

  // The copy's GPU address, or nothing when all are in use.
  std::optional<GpuAddress> keep(const hsa_kernel_dispatch_packet_t& packet);
  void release(GpuAddress copy);

 private:
  AddressSpace& memory_;
  std::byte* pages_ = nullptr;
  std::vector<GpuAddress> free_;
};

}  // namespace uptempo::vgpu
