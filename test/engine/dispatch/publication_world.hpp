// Queues over a queue double whose kernargs behave like device memory, for tests that single-step a
// publication (single_step.hpp). No processor takes the packets.
#pragma once

#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <uptempo/dispatch/hardware_queue.hpp>
#include <uptempo/memory/kernarg_memory.hpp>
#include <uptempo/stream/stream.hpp>
#include <uptempo/stream/streams_state.hpp>
#include "test/engine/double_device.hpp"
#include "test/engine/double_kernel.hpp"
#include "test/engine/state_access.hpp"
#include "test/support/hsa_double.hpp"
#include "test/support/queue_double.hpp"
#include "test/support/single_step.hpp"

namespace uptempo::test {

enum class By : uint8_t { flush, read_back };
enum class Ring : uint8_t { host, device };

class PublicationWorld {
 public:
  static constexpr size_t kKernargBytes = 4096;

  PublicationWorld(By by, Ring ring) : by_(by) {
    hsa_calls().is_device_memory = [ring](const void*) { return ring == Ring::device; };
    std::memset(kernargs_.data(), 0xcd, sizeof kernargs_);
    for (int i = 0; i < 16; ++i) handles_.push_back(signals_.emplace_back(0).handle());
  }
  ~PublicationWorld() { hsa_calls().is_device_memory = nullptr; }
  PublicationWorld(const PublicationWorld&) = delete;
  PublicationWorld& operator=(const PublicationWorld&) = delete;

  std::span<std::byte> kernargs() { return {kernargs_.front().bytes, kKernargBytes}; }
  QueueDouble& memory() { return queue_; }
  detail::DeviceWrites writes() { return {by_ == By::flush ? &hdp_.word : nullptr, line_.bytes}; }
  std::span<const hsa_signal_t> signals() const { return handles_; }
  QueueOptions options() const {
    return {.packets = 64,
            .publications = 16,
            .timing_signals = 0,
            .kernarg_bytes = kKernargBytes,
            .kernarg_slab_bytes = 1024};
  }
  detail::BatchQueue::Parts parts() {
    return {.queue = queue_.queue(),
            .kernargs = kernargs(),
            .foreign_error = nullptr,
            .common = {},
            .writes = writes()};
  }
  std::vector<Watched> watched() {
    const auto& abi = queue_.abi();
    return {{Place::kernargs, kernargs_.data(), sizeof kernargs_},
            {Place::ring, &queue_.slot(0), queue_.ring_size() * sizeof(aql::Packet64)},
            {Place::hdp, &hdp_.word, sizeof hdp_.word},
            {Place::line, line_.bytes, sizeof line_.bytes},
            {Place::write_index, const_cast<const uint64_t*>(&abi.write_dispatch_id), 8},
            {Place::doorbell, &doorbell(), 8}};
  }
  // The steps of a publication. `run` may be called once.
  Steps steps(const std::function<void()>& run) { return single_step(watched(), run); }

 private:
  const uint64_t& doorbell() {
    const auto* const signal =
        reinterpret_cast<const amd_signal_t*>(queue_.doorbell_signal().handle);
    return const_cast<const uint64_t&>(*signal->hardware_doorbell_ptr);
  }
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  struct alignas(64) Register {
    uint32_t word = 0;
  };
  const By by_;
  std::array<Line, kKernargBytes / 64> kernargs_;
  Line line_{};
  Register hdp_;
  QueueDouble queue_;
  std::deque<SignalDouble> signals_;
  std::vector<hsa_signal_t> handles_;
};

// A batch over a queue of its own.
struct BatchWorld : PublicationWorld {
  BatchWorld(By by, Ring ring)
      : PublicationWorld(by, ring),
        queue(detail::StateAccess::queue(
            std::make_unique<detail::BatchQueue>(parts(), signals(), options()))) {}
  Steps publish(uint32_t packets) {
    return steps([&] {
      BatchSubmitter batch(queue, {});
      for (uint32_t i = 0; i < packets; ++i) batch.dispatch(kernel, Grid{1}, i + 1);
      batch.submit();
    });
  }
  Kernel<uint32_t> kernel = number_kernel();
  Queue queue;
};

// The same over an HSA queue that threads share.
struct SharedWorld : PublicationWorld {
  SharedWorld(By by, Ring ring) : PublicationWorld(by, ring) {
    detail::BatchQueue::Parts shared = parts();
    shared.common = std::make_shared<detail::SharedHsaQueue>(memory().queue());
    queue.emplace(detail::StateAccess::queue(
        std::make_unique<detail::BatchQueue>(shared, signals(), options())));
  }
  Steps publish(uint32_t packets) {
    return steps([&] {
      BatchSubmitter batch(*queue, {});
      for (uint32_t i = 0; i < packets; ++i) batch.dispatch(kernel, Grid{1}, i + 1);
      batch.submit();
    });
  }
  Kernel<uint32_t> kernel = number_kernel();
  std::optional<Queue> queue;
};

// A replay of a recording that was just patched.
struct ReplayWorld : PublicationWorld {
  ReplayWorld(By by, Ring ring)
      : PublicationWorld(by, ring),
        state(std::make_unique<detail::BatchQueue>(host_parts(), signals(), options())),
        batch_queue(state.get()),
        queue(detail::StateAccess::queue(std::move(state))),
        recording(detail::StateAccess::recording(std::make_unique<detail::RecordingState>(
            *batch_queue, kernargs(), RecordingOptions{.spare_kernarg_bytes = 1024}, writes()))) {}
  Steps publish(uint32_t packets) {
    std::vector<Node<uint32_t>> nodes;
    for (uint32_t i = 0; i < packets; ++i)
      nodes.push_back(recording->dispatch(kernel, Grid{1}, i + 1));
    return steps([&] {
      for (uint32_t i = 0; i < packets; ++i) recording->set<0>(nodes[i], i + 1000);
      recording->replay(queue);
    });
  }
  // The recording's own memory is the device's, the queue's is not used.
  detail::BatchQueue::Parts host_parts() {
    detail::BatchQueue::Parts host = parts();
    host.kernargs = own;
    host.writes = {};
    return host;
  }
  alignas(64) std::array<std::byte, kKernargBytes> own{};
  Kernel<uint32_t> kernel = number_kernel();
  std::unique_ptr<detail::BatchQueue> state;
  detail::BatchQueue* batch_queue;
  Queue queue;
  std::unique_ptr<Recording> recording;
};

// One launch of a stream.
struct StreamWorld : PublicationWorld {
  StreamWorld(By by, Ring ring)
      : PublicationWorld(by, ring),
        state(std::make_shared<detail::StreamsState>(
            StreamsOptions{.queue = options()},
            [this](const detail::StreamQueueOptions& of_queue) {
              return std::make_unique<detail::StreamQueue>(parts(), signals(), of_queue);
            },
            detail::Transfers::Parts{})),
        streams(detail::StateAccess::streams(state)),
        stream(std::make_unique<Stream>(*streams)) {}
  Steps publish(uint32_t packets) {
    return steps([&] {
      for (uint32_t i = 0; i < packets; ++i) stream->launch(kernel, Grid{1}, i + 1);
    });
  }
  Kernel<uint32_t> kernel = number_kernel();
  std::shared_ptr<detail::StreamsState> state;
  std::unique_ptr<Streams> streams;
  std::unique_ptr<Stream> stream;
};

}  // namespace uptempo::test
