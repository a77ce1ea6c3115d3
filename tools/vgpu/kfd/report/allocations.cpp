#include "kfd/report/allocations.hpp"

#include <linux/kfd_ioctl.h>

#include <iterator>

namespace uptempo::vgpu::kfd {

void Allocations::add(const Allocation& allocation) {
  const std::lock_guard lock(mutex_);
  by_address_[allocation.begin] = allocation;
  begins_[allocation.handle] = allocation.begin;
}

void Allocations::remove(uint64_t handle) {
  const std::lock_guard lock(mutex_);
  const auto begin = begins_.find(handle);
  if (begin == begins_.end()) return;
  const auto found = by_address_.find(begin->second);
  if (found != by_address_.end() && found->second.handle == handle) by_address_.erase(found);
  begins_.erase(begin);
}

std::optional<Allocation> Allocations::find(GpuAddress address) const {
  const std::lock_guard lock(mutex_);
  const auto after = by_address_.upper_bound(address);
  if (after == by_address_.begin()) return std::nullopt;
  const Allocation& found = std::prev(after)->second;
  if (address - found.begin >= found.bytes) return std::nullopt;
  return found;
}

std::string kind_in_words(const Allocation& allocation) {
  const auto has = [&](uint32_t flag) { return (allocation.flags & flag) != 0; };
  const bool uncached = has(KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED);
  const bool fine = has(KFD_IOC_ALLOC_MEM_FLAGS_COHERENT);
  if (has(KFD_IOC_ALLOC_MEM_FLAGS_VRAM))
    return std::string(uncached ? "uncached "
                       : fine   ? "fine-grained "
                                : "") +
           "device memory (VRAM)";
  const std::string kind = uncached ? "uncached " : fine ? "fine-grained " : "coarse-grained ";
  return kind + (allocation.registered ? "host memory, registered by the program" : "host memory");
}

}  // namespace uptempo::vgpu::kfd
