#include "cp/packet_copies.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace uptempo::vgpu {
namespace {

constexpr size_t kBytes = 64 * 1024;

}  // namespace

PacketCopies::PacketCopies(AddressSpace& memory, bool enabled) : memory_(memory) {
  if (!enabled) return;
  void* pages = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(),
                            "cannot allocate memory for packet copies");
  pages_ = static_cast<std::byte*>(pages);
  Mapping mapping;
  mapping.begin = reinterpret_cast<GpuAddress>(pages_);
  mapping.end = mapping.begin + kBytes;
  mapping.host = pages_;
  mapping.writable = false;
  mapping.executable = false;
  memory_.map(mapping);
  for (size_t offset = kBytes; offset > 0; offset -= sizeof(hsa_kernel_dispatch_packet_t))
    free_.push_back(mapping.begin + offset - sizeof(hsa_kernel_dispatch_packet_t));
}

PacketCopies::~PacketCopies() {
  if (pages_ == nullptr) return;
  memory_.unmap(reinterpret_cast<GpuAddress>(pages_));
  munmap(pages_, kBytes);
}

std::optional<GpuAddress> PacketCopies::keep(const hsa_kernel_dispatch_packet_t& packet) {
  if (free_.empty()) return std::nullopt;
  const GpuAddress copy = free_.back();
  free_.pop_back();
  std::memcpy(reinterpret_cast<void*>(copy), &packet, sizeof packet);
  return copy;
}

void PacketCopies::release(GpuAddress copy) { free_.push_back(copy); }

}  // namespace uptempo::vgpu
