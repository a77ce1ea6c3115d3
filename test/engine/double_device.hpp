// A Queue over the packet processor double: the whole submit path without ROCr, a device, or a
// system call.
//
// Kernels have one argument, a 32-bit number. The constructor's function runs with it when the
// packet completes.
//
// The destructor fails the test if signals, kernarg slabs or publications of the queue are still in
// use, and names them. Batches must be destroyed before. It waits for a working device: a test of a
// queue that is destroyed during its work calls destroy_queue(). Not checked: a queue that the test
// destroyed; a paused or failed device with unfinished publications; a test that an exception ends.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <uptempo/dispatch/batch_queue.hpp>
#include <uptempo/dispatch/batch_submitter.hpp>
#include <uptempo/recording/recording_state.hpp>
#include "test/engine/double_kernel.hpp"
#include "test/engine/state_access.hpp"
#include "test/support/catch.hpp"
#include "test/support/eventually.hpp"
#include "test/support/packet_processor.hpp"
#include "test/support/queue_double.hpp"
#include "test/support/soon.hpp"

namespace uptempo::test {

struct DoubleOptions {
  PacketProcessorOptions device{};
  QueueOptions queue{.packets = 64,
                     .publications = 16,
                     .timing_signals = 0,
                     .kernarg_bytes = 64 << 10,
                     .kernarg_slab_bytes = 1024,
                     .drain_timeout = kHang};
  uint32_t signals = 32;
};

class DoubleDevice {
 public:
  using Effect = std::function<void(uint32_t number)>;

  explicit DoubleDevice(DoubleOptions options = {}, Effect effect = {})
      : effect_(std::move(effect)),
        kernargs_(options.queue.kernarg_bytes / 64),
        processor_(options.device, [this](const hsa_kernel_dispatch_packet_t& packet, uint64_t) {
          // Reads the argument when the kernel ends, so a kernarg block that is reused too early is
          // detected.
          if (effect_) effect_(*static_cast<const volatile uint32_t*>(packet.kernarg_address));
        }) {
    for (uint32_t i = 0; i < options.signals; ++i)
      handles_.push_back(signals_.emplace_back(0).handle());
    auto state = std::make_unique<detail::BatchQueue>(
        detail::BatchQueue::Parts{.queue = processor_.queue(),
                                  .kernargs = {kernargs_.front().bytes, kernargs_.size() * 64},
                                  .foreign_error = &processor_.error()},
        handles_, options.queue);
    state_ = state.get();
    queue_ = detail::StateAccess::queue(std::move(state));
  }
  ~DoubleDevice() {
    if (!queue_ || std::uncaught_exceptions() != exceptions_) return;
    const bool works = !processor_.paused() && !state_->timeline().failed();
    // The device and other threads' waits may not have finished yet.
    if (works) (void)eventually([this] { return unfinished() == 0; });
    const std::string in_use = this->in_use();
    if (in_use.empty() || (!works && unfinished() != 0)) return;
    FAIL_CHECK("the code under test did not give back to the queue: " << in_use);
  }
  DoubleDevice(const DoubleDevice&) = delete;
  DoubleDevice& operator=(const DoubleDevice&) = delete;

  Queue& queue() { return *queue_; }
  // The implementation of queue().
  detail::BatchQueue& state() { return *state_; }
  PacketProcessor& processor() { return processor_; }
  BatchSubmitter batch(const BatchOptions& options = {}) {
    return BatchSubmitter(*queue_, options);
  }
  // `kernargs` is the recording's kernarg memory, including spare bytes.
  std::unique_ptr<Recording> recording(std::span<std::byte> kernargs,
                                       const RecordingOptions& options) {
    return detail::StateAccess::recording(
        std::make_unique<detail::RecordingState>(*state_, kernargs, options));
  }
  void destroy_queue() { queue_.reset(); }
  // Names the resources of the queue in use, after reclaiming; empty if there are none.
  std::string in_use() {
    queue_->reclaim();
    const Pressure pressure = queue_->pressure();
    std::string text;
    const auto add = [&text](const Level& level, const char* name) {
      if (level.in_use == 0) return;
      if (!text.empty()) text += ", ";
      text += std::to_string(level.in_use);
      text += " of ";
      text += std::to_string(level.capacity);
      text += ' ';
      text += name;
    };
    add(pressure.publications, "publications");
    add(pressure.signals, "signals");
    add(pressure.timing_signals, "timing signals");
    add(pressure.kernarg_slabs, "kernarg slabs");
    return text;
  }
  std::deque<SignalDouble>& signals() { return signals_; }

 private:
  uint32_t unfinished() {
    queue_->reclaim();
    return queue_->pressure().publications.in_use;
  }

  struct alignas(64) Line {
    std::byte bytes[64];
  };
  Effect effect_;
  std::vector<Line> kernargs_;
  std::deque<SignalDouble> signals_;
  std::vector<hsa_signal_t> handles_;
  PacketProcessor processor_;
  std::optional<Queue> queue_;
  detail::BatchQueue* state_ = nullptr;  // of queue_
  const int exceptions_ = std::uncaught_exceptions();
};

inline hsa_kernel_dispatch_packet_t dispatch_of(const Completed& completed) {
  return aql::packet_as<hsa_kernel_dispatch_packet_t>(completed.packet);
}

inline const WaitPolicy kActiveWait = WaitPolicy::active();

}  // namespace uptempo::test
