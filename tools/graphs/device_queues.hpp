// The queues in which taken graphs run, one set per device.
//
// Thread safety: any thread. A LockedQueue is used under its lock.
// Lifetime: that of the process, because streams of HIP may wait for the queues until then.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <uptempo/dispatch/queue.hpp>
#include <uptempo/hip/api/hip_api.hpp>
#include <uptempo/runtime/runtime.hpp>

namespace uptempo::graphs {

struct LockedQueue {
  explicit LockedQueue(const Agent& agent) : queue(agent) {}
  std::mutex mutex;
  Queue queue;
};

class DeviceQueues {
 public:
  // The queues of a HIP device. Throws Error.
  static DeviceQueues& of(int device);

  const Agent& agent() const noexcept { return agent_; }
  // A queue for imports, which need one of the device.
  LockedQueue& first();
  // The queue of a stream. Streams share queues in turn. Throws Error.
  LockedQueue& of(hipStream_t stream);

 private:
  // As many as HIP has for its streams by default (GPU_MAX_HW_QUEUES).
  static constexpr size_t kQueues = 4;

  DeviceQueues(const Runtime& runtime, int device);
  LockedQueue& at(size_t index);

  Runtime runtime_;
  Agent agent_;
  std::mutex mutex_;
  std::array<std::unique_ptr<LockedQueue>, kQueues> queues_;
  std::unordered_map<hipStream_t, size_t> streams_;
};

}  // namespace uptempo::graphs
