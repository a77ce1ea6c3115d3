// Several engine queues over one packet processor double, as a SharedQueue creates them: one per
// thread, without ROCr or a device.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include <uptempo/dispatch/hardware_queue.hpp>
#include "test/engine/double_device.hpp"

namespace uptempo::test {

class SharedDevice {
 public:
  explicit SharedDevice(size_t queues, DoubleOptions options = {}, DoubleDevice::Effect effect = {})
      : effect_(std::move(effect)),
        processor_(options.device,
                   [this](const hsa_kernel_dispatch_packet_t& packet, uint64_t) {
                     if (effect_)
                       effect_(*static_cast<const volatile uint32_t*>(packet.kernarg_address));
                   }),
        common_(std::make_shared<detail::SharedHsaQueue>(processor_.queue())) {
    while (members_.size() < queues) members_.emplace_back(*this, options);
  }

  Queue& operator[](size_t i) { return *members_[i].queue; }
  void destroy_queue(size_t i) { members_[i].queue.reset(); }
  PacketProcessor& processor() { return processor_; }
  detail::SharedHsaQueue& common() { return *common_; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  struct Member {
    Member(SharedDevice& device, const DoubleOptions& options)
        : kernargs(options.queue.kernarg_bytes / 64) {
      for (uint32_t i = 0; i < options.signals; ++i)
        handles.push_back(device.signals_.emplace_back(0).handle());
      queue = detail::StateAccess::queue(std::make_unique<detail::BatchQueue>(
          detail::BatchQueue::Parts{.queue = device.processor_.queue(),
                                    .kernargs = {kernargs.front().bytes, kernargs.size() * 64},
                                    .foreign_error = &device.processor_.error(),
                                    .common = device.common_},
          handles, options.queue));
    }
    std::vector<Line> kernargs;
    std::vector<hsa_signal_t> handles;
    std::optional<Queue> queue;
  };

  DoubleDevice::Effect effect_;
  // of all queues: packets and slots of a destroyed queue may still use its signals
  std::deque<SignalDouble> signals_;
  PacketProcessor processor_;
  std::shared_ptr<detail::SharedHsaQueue> common_;
  std::deque<Member> members_;
};

}  // namespace uptempo::test
