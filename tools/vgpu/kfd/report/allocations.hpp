// The process's allocations of GPU memory, for findings: which one contains an address, and where
// the program made it.
//
// Thread safety: any thread. The lock is taken last.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "device/host/host_stacks.hpp"
#include "device/memory.hpp"

namespace uptempo::vgpu::kfd {

struct Allocation {
  GpuAddress begin = 0;
  uint64_t bytes = 0;
  uint32_t flags = 0;       // KFD_IOC_ALLOC_MEM_FLAGS_*
  bool registered = false;  // memory of the program, which has another address there
  HostStackId allocated = 0;
  uint64_t handle = 0;
};

class Allocations {
 public:
  // Replaces an allocation that begins at the same address.
  void add(const Allocation& allocation);
  // Does nothing if another allocation has replaced it.
  void remove(uint64_t handle);
  std::optional<Allocation> find(GpuAddress address) const;

 private:
  mutable std::mutex mutex_;
  std::map<GpuAddress, Allocation> by_address_;
  std::unordered_map<uint64_t, GpuAddress> begins_;  // by handle
};

// "device memory", "fine-grained host memory", ...
std::string kind_in_words(const Allocation& allocation);

}  // namespace uptempo::vgpu::kfd
