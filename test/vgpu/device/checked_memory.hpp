// A memory checker, a buffer of device memory, and the findings.
#pragma once

#include <vector>

#include "device/memory_check/checker.hpp"

namespace uptempo::vgpu::memory_check {

inline constexpr GpuAddress kBlock = 0x7f0000000000;
inline constexpr uint64_t kBlockBytes = uint64_t{256} << 20;
inline constexpr BufferKind kDevice{.flags = 1, .is_undefined = true, .host_stores = true};
inline const Packet kKernel{};

struct Checked {
  std::vector<Finding> findings;
  Checker checker{[this](const Finding& finding) { findings.push_back(finding); }, false};

  Checked() { checker.add_buffer(kBlock, kBlockBytes, kDevice); }

  // With a redzone of one page.
  bool allocate(GpuAddress begin, uint64_t bytes, HostStackId stack = 1) {
    return checker.allocated({.begin = begin,
                              .bytes = bytes,
                              .reserved_bytes = (bytes + 4095) / 4096 * 4096 + 4096,
                              .stack = stack});
  }
  Verdict verdict(GpuAddress address, uint64_t bytes, bool reads) {
    const Allocation* const allocation = checker.find(address);
    return allocation == nullptr ? Verdict::outside : check(*allocation, address, bytes, reads);
  }
  void store(GpuAddress address, uint64_t bytes) { mark(*checker.find(address), address, bytes); }
  // Reports an access that is not fine, as a dispatch does.
  void access(GpuAddress address, uint64_t bytes, bool reads, GpuAddress instruction) {
    checker.found({.packet = kKernel,
                   .access = reads ? Access::read : Access::write,
                   .instruction = instruction,
                   .address = address,
                   .bytes = bytes},
                  verdict(address, bytes, reads));
  }
};

}  // namespace uptempo::vgpu::memory_check
