#include "engine/memory/kernarg_memory.hpp"

#include <cstdlib>
#include <new>

#include "engine/memory/access.hpp"

namespace uptempo::detail {

KernargMemory::KernargMemory(const Agent* agent, uint64_t size_bytes, bool on_device)
    : size_bytes_((size_bytes + DeviceWrites::kLineBytes - 1) / DeviceWrites::kLineBytes *
                  DeviceWrites::kLineBytes) {
  if (agent == nullptr) {
    host_.reset(static_cast<std::byte*>(std::aligned_alloc(DeviceWrites::kLineBytes, size_bytes_)));
    if (!host_) throw std::bad_alloc();
  } else if (on_device) {
    device_ = Allocation(*agent, MemoryKind::device, size_bytes_);
    allow_host_access(*agent, device_.data());
    count(&CounterBlock::kernarg_allocations);
  } else {
    memory_ = KernargBuffer(*agent, size_bytes_);
  }
}

std::byte* KernargMemory::data() const noexcept {
  if (host_) return host_.get();
  return device_.data() != nullptr ? static_cast<std::byte*>(device_.data()) : memory_.data();
}

void KernargMemory::Free::operator()(std::byte* memory) const noexcept { std::free(memory); }

}  // namespace uptempo::detail
