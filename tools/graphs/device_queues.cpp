#include "tools/graphs/device_queues.hpp"

#include <map>
#include <new>

#include <uptempo/hip/device.hpp>

namespace uptempo::graphs {

DeviceQueues::DeviceQueues(const Runtime& runtime, int device)
    : runtime_(runtime), agent_(hip::agent(runtime, device)) {}

DeviceQueues& DeviceQueues::of(int device) {
  struct All {
    std::mutex mutex;
    std::map<int, std::unique_ptr<DeviceQueues>> devices;
  };
  alignas(All) static std::byte storage[sizeof(All)];
  static All* const all = ::new (storage) All;
  const std::lock_guard lock(all->mutex);
  std::unique_ptr<DeviceQueues>& queues = all->devices[device];
  if (queues == nullptr) queues.reset(new DeviceQueues(Runtime(), device));
  return *queues;
}

LockedQueue& DeviceQueues::at(size_t index) {
  if (queues_[index] == nullptr) queues_[index] = std::make_unique<LockedQueue>(agent_);
  return *queues_[index];
}

LockedQueue& DeviceQueues::first() {
  const std::lock_guard lock(mutex_);
  return at(0);
}

LockedQueue& DeviceQueues::of(hipStream_t stream) {
  const std::lock_guard lock(mutex_);
  return at(streams_.try_emplace(stream, streams_.size() % kQueues).first->second);
}

}  // namespace uptempo::graphs
