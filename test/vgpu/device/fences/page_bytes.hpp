// Converts ranges of bytes to masks of their pages.
#pragma once

#include <algorithm>

#include "device/fences/page_accesses.hpp"
#include "device/host/host_events.hpp"

namespace uptempo::test {

// Calls visit(page, mask) for each page of [address, address + bytes).
template <typename Visit>
void for_page_bytes(vgpu::GpuAddress address, uint64_t bytes, Visit visit) {
  using namespace vgpu::fences;
  while (bytes != 0) {
    const vgpu::GpuAddress page = page_of(address);
    vgpu::PageMask mask{};
    for (; bytes != 0 && page_of(address) == page; ++address, --bytes)
      mask[address % kPageBytes / 64] |= uint64_t{1} << address % 64;
    visit(page, mask);
  }
}

// The same for a range inside one page.
inline vgpu::PageMask page_bytes(vgpu::GpuAddress address, uint32_t bytes) {
  vgpu::PageMask result{};
  for_page_bytes(address, bytes,
                 [&](vgpu::GpuAddress, const vgpu::PageMask& mask) { result = mask; });
  return result;
}

}  // namespace uptempo::test
