#include <uptempo/memory/kernarg_memory.hpp>

#include <new>

namespace uptempo::detail {

KernargMemory::KernargMemory(const Agent* agent, uint64_t size_bytes, bool on_device)
    : size_bytes_((size_bytes + DeviceWrites::kLineBytes - 1) / DeviceWrites::kLineBytes *
                  DeviceWrites::kLineBytes) {
  if (agent == nullptr) {
    host_.reset(std::aligned_alloc(DeviceWrites::kLineBytes, size_bytes_));
    if (!host_) throw std::bad_alloc();
    return;
  }
  memory_ = Allocation(*agent, on_device ? MemoryKind::device : MemoryKind::kernarg, size_bytes_);
  if (!on_device) return;
  allow_host_access(*agent, memory_.data());
  count(&CounterBlock::kernarg_allocations);
}

}  // namespace uptempo::detail
