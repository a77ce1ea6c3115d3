// GPU-visible copies of dispatch packets whose ring slots are released before their kernels end
// (--early-read-index). A kernel reads its packet through dispatch_ptr while it runs, and the
// producer may overwrite a released slot.
//
// Thread safety: none; the command processor's thread owns it.
#pragma once

#include <hsa/hsa.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "device/memory.hpp"

namespace uptempo::vgpu {

class PacketCopies {
 public:
  // With `enabled`, maps read-only memory for the copies into the GPU's address space at its host
  // address.
  PacketCopies(AddressSpace& memory, bool enabled);
  ~PacketCopies();
  PacketCopies(const PacketCopies&) = delete;
  PacketCopies& operator=(const PacketCopies&) = delete;

  // Returns the copy's GPU address, or nullopt if all copies are in use.
  std::optional<GpuAddress> keep(const hsa_kernel_dispatch_packet_t& packet);
  void release(GpuAddress copy);

 private:
  AddressSpace& memory_;
  std::byte* pages_ = nullptr;
  std::vector<GpuAddress> free_;
};

}  // namespace uptempo::vgpu
