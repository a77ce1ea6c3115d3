// Streams over packet processor doubles: any number of hardware queues, each with a device of its
// own, and a log of the begin and end of each kernel.
//
// Kernels have one argument, a 32-bit number, which identifies them in the log.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <uptempo/runtime/counters.hpp>
#include <uptempo/stream/stream.hpp>
#include <uptempo/stream/streams_state.hpp>
#include "test/engine/double_device.hpp"
#include "test/engine/state_access.hpp"
#include "test/support/packet_processor.hpp"
#include "test/support/queue_double.hpp"

namespace uptempo::test {

// Order of begins and ends: a later event has a higher number. Kernel numbers are below `kernels`.
class Log {
 public:
  explicit Log(size_t kernels) : began_(kernels), ended_(kernels) {}

  void begin(uint32_t number) { began_.at(number).store(++now_); }
  void end(uint32_t number) { ended_.at(number).store(++now_); }
  uint64_t began(uint32_t number) const { return began_[number]; }
  uint64_t ended(uint32_t number) const { return ended_[number]; }
  bool is_before(uint32_t first, uint32_t second) const {
    return ended(first) != 0 && began(second) != 0 && ended(first) < began(second);
  }
  bool overlap(uint32_t one, uint32_t other) const {
    return began(one) < ended(other) && began(other) < ended(one);
  }

 private:
  std::atomic<uint64_t> now_{0};
  std::vector<std::atomic<uint64_t>> began_, ended_;
};

struct StreamDevicesOptions {
  StreamsOptions streams{.queue = {.packets = 64,
                                   .publications = 16,
                                   .timing_signals = 0,
                                   .kernarg_bytes = 64 << 10,
                                   .kernarg_slab_bytes = 1024,
                                   .drain_timeout = kHang},
                         .epoch_packets = 16,
                         .patience = kHang};
  PacketProcessorOptions device{};
  detail::Transfers::Parts copies{};
  size_t kernels = 1 << 16;
  // Called before a hardware queue is created, on the thread that creates it.
  std::function<void()> before_queue{};
  // Called when a kernel ends, while it still owns its arguments, on a thread of its device.
  std::function<void(const hsa_kernel_dispatch_packet_t& packet)> at_end{};
};

class StreamDevices {
 public:
  explicit StreamDevices(StreamDevicesOptions options = {}) : log(options.kernels) {
    state_ = std::make_shared<detail::StreamsState>(
        options.streams,
        [this, options](const detail::StreamQueueOptions& of_queue) {
          if (options.before_queue) options.before_queue();
          const std::lock_guard lock(mutex_);
          return devices_.emplace_back(*this, options, of_queue, devices_.size())
              .make_queue(of_queue);
        },
        options.copies);
    streams_ = detail::StateAccess::streams(state_);
  }

  Streams& streams() { return *streams_; }
  operator Streams&() { return *streams_; }
  detail::StreamsState& state() { return *state_; }
  size_t devices() const { return devices_.size(); }
  PacketProcessor& device(size_t index) { return devices_.at(index).processor; }
  PacketProcessor& device_of(const Stream& stream) {
    for (Device& device : devices_)
      if (device.processor.queue() == hardware_queue(stream)) return device.processor;
    throw std::runtime_error("a queue without device");
  }
  void pause() {
    for (Device& device : devices_) device.processor.pause();
  }
  void resume() {
    for (Device& device : devices_) device.processor.resume();
  }
  uint64_t completed() {
    uint64_t sum = 0;
    for (Device& device : devices_) sum += device.processor.completed_count();
    return sum;
  }
  // The packets stored in the queue of that device, in order, as far as its ring still holds them.
  std::vector<aql::Packet64> ring(size_t index) {
    QueueDouble& memory = devices_.at(index).processor.memory();
    std::vector<aql::Packet64> packets;
    for (uint64_t i = memory.read_index().load(); i < memory.write_index().load(); ++i)
      packets.push_back(memory.slot(i));
    return packets;
  }
  std::vector<aql::Packet64> ring_of(const Stream& stream) {
    for (size_t i = 0; i < devices_.size(); ++i)
      if (devices_[i].processor.queue() == hardware_queue(stream)) return ring(i);
    throw std::runtime_error("a queue without device");
  }
  // Destroys the Streams and everything they keep. Every Stream must be destroyed before.
  void destroy_streams() {
    streams_.reset();
    state_.reset();
  }

  Log log;

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  struct Device {
    Device(StreamDevices& all, const StreamDevicesOptions& options,
           const detail::StreamQueueOptions& of_queue, size_t index)
        : kernargs(of_queue.queue.kernarg_bytes / 64),
          processor(with_log(all, options.device, index),
                    [&all, at_end = options.at_end](const hsa_kernel_dispatch_packet_t& packet,
                                                    uint64_t) {
                      if (at_end) at_end(packet);
                      all.log.end(number_of(packet));
                    }) {
      for (uint32_t i = 0; i < of_queue.queue.publications; ++i)
        handles.push_back(all.signals_.emplace_back(0).handle());
    }
    std::unique_ptr<detail::StreamQueue> make_queue(const detail::StreamQueueOptions& of_queue) {
      const BorrowedQueue& borrowed = of_queue.borrowed;  // a device of the test's own
      return std::make_unique<detail::StreamQueue>(
          detail::StreamQueue::Parts{
              .queue = borrowed.queue != nullptr ? borrowed.queue : processor.queue(),
              .kernargs = {kernargs.front().bytes, kernargs.size() * 64},
              .foreign_error = borrowed.queue != nullptr ? borrowed.error : &processor.error()},
          handles, of_queue);
    }
    std::vector<Line> kernargs;
    std::vector<hsa_signal_t> handles;
    PacketProcessor processor;
  };

  static uint32_t number_of(const hsa_kernel_dispatch_packet_t& packet) {
    return *static_cast<const volatile uint32_t*>(packet.kernarg_address);
  }
  static PacketProcessorOptions with_log(StreamDevices& all, PacketProcessorOptions options,
                                         size_t index) {
    options.seed = options.seed * 1000 + index;
    auto duration = options.duration;
    options.duration = [&all, duration, random = std::make_shared<std::mt19937_64>(options.seed)](
                           const hsa_kernel_dispatch_packet_t& packet) {
      all.log.begin(number_of(packet));
      return duration ? duration(packet) : 1 + static_cast<unsigned>((*random)() % 16);
    };
    return options;
  }

  std::mutex mutex_;
  // Signals of all devices. A failed queue may wait for another's signal until it is destroyed.
  std::deque<SignalDouble> signals_;
  std::deque<Device> devices_;  // outlive the queues
  std::shared_ptr<detail::StreamsState> state_;
  std::unique_ptr<Streams> streams_;
};

// Devices that execute nothing before they are resumed.
inline StreamDevicesOptions paused(uint32_t queues = 4) {
  StreamDevicesOptions options;
  options.streams.hardware_queues = queues;
  options.device.paused = true;
  return options;
}

inline void launch(Stream& stream, uint32_t number) {
  static const auto kernel = number_kernel();
  stream.launch(kernel, Grid{1}, number);
}

// The cost of a part of a program.
class Spent {
 public:
  Counters operator()() const { return Counters::now() - before_; }

 private:
  Counters before_ = Counters::now();
};

}  // namespace uptempo::test
