// A packet processor in this process: takes packets out of a QueueDouble and executes them, as a
// kernel agent does. Plans, signals, kernargs and completions can be tested under sanitizers,
// without a device and without ROCr.
//
// It implements: header order; barrier bit; barrier-AND and barrier-OR with dependencies; AMD
// barrier-value; completion signals (decremented with release order after the packet's effects,
// mailbox ignored); start and end times; slots freed through the read index. Packets without
// barrier bit overlap: a launched kernel is active for a number of steps, and other kernels
// complete in between, in an order drawn from the seed. Fence scopes have no effect here; the
// virtual GPU models them. A packet that it cannot execute stops the queue with an error, as on a
// device.
//
//   PacketProcessor device({.ring_size = 64, .seed = 1},
//                          [&](const hsa_kernel_dispatch_packet_t& packet, uint64_t index) {...});
//   auto writer = aql::AqlQueueWriter::borrow(device.queue(),
//                                             &device.error());
//
// Thread safety: one internal thread executes packets and calls the kernel function. Any thread may
// call the public functions. The destructor stops the thread between two steps.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "test/support/queue_double.hpp"

namespace uptempo::test {

struct PacketProcessorOptions {
  uint32_t ring_size = 64;
  uint64_t seed = 1;
  amd_signal_kind_t doorbell_kind = AMD_SIGNAL_KIND_DOORBELL;
  hsa_queue_type32_t type = HSA_QUEUE_TYPE_MULTI;
  // True: the read index passes a packet at its launch. False: when it and all packets before it
  // are complete.
  bool early_read_index = false;
  uint64_t read_index_step = 1;  // the read index is always a multiple of it
  // True: packets without barrier bit overtake a barrier packet whose dependencies are not met, as
  // the specification allows. False: the barrier packet blocks the queue, as in command processors.
  bool barriers_step_aside = false;
  bool paused = false;  // take no packets before resume()
  bool times = true;    // false: signals get no times, as of a queue that was mapped too early
  // Kernels of this object read their packets when they end: the kernel function gets what the slot
  // then holds. 0: none.
  uint64_t reads_packet = 0;
  // Number of steps for which a kernel stays active. Default: 1 to 16, drawn from the seed.
  std::function<unsigned(const hsa_kernel_dispatch_packet_t&)> duration{};
};

// One completed packet; recorded in order of completion.
struct Completed {
  uint64_t index = 0;
  aql::Packet64 packet{};
};

class PacketProcessor {
 public:
  // Runs when a kernel completes, before its signal is decremented; performs the kernel's effects.
  using Kernel = std::function<void(const hsa_kernel_dispatch_packet_t&, uint64_t index)>;

  explicit PacketProcessor(PacketProcessorOptions options = {}, Kernel kernel = {});
  ~PacketProcessor();
  PacketProcessor(const PacketProcessor&) = delete;
  PacketProcessor& operator=(const PacketProcessor&) = delete;

  hsa_queue_t* queue() noexcept { return double_.queue(); }
  QueueDouble& memory() noexcept { return double_; }

  // Publishes a packet as another producer does: in the next slot, with its header last, then the
  // write index and the doorbell.
  void publish(const aql::Packet64& packet) noexcept;

  // Returns when the processor is at rest. Returns at once if a kernel or `duration` calls it.
  void pause() noexcept;
  void resume() noexcept { paused_.store(false); }
  bool paused() const noexcept { return paused_.load(); }

  // Stops the queue permanently and publishes `status` as its error, as a fault does.
  void fail(hsa_status_t status) noexcept;
  const std::atomic<hsa_status_t>& error() const noexcept { return error_; }

  uint64_t completed_count() const noexcept {
    return completed_count_.load(std::memory_order_acquire);
  }
  std::vector<Completed> completed() const;
  // Returns true when `count` packets have completed in total, false after a queue error or a hang.
  bool wait_completed(uint64_t count) const;
  // Doorbell values that the processor read, in order. It misses a value that is overwritten
  // between two reads.
  std::vector<uint64_t> doorbells() const;

 private:
  struct Active {
    uint64_t index;
    aql::Packet64 packet;
    unsigned steps_left;
    uint64_t start_ticks;
  };

  void run();
  void watch_doorbell();
  bool launch_next();
  void advance_active();
  bool dependencies_met(const aql::Packet64& packet);
  bool may_complete(const aql::Packet64& packet);
  void complete(const Active& active);
  hsa_kernel_dispatch_packet_t packet_at_end(const Active& active);
  void give_back_slots();

  PacketProcessorOptions options_;
  Kernel kernel_;
  QueueDouble double_;
  std::mt19937_64 random_;
  uint64_t next_ = 0;
  uint64_t clock_ = 1;
  uint64_t doorbell_seen_;
  std::vector<Active> active_;
  std::atomic<bool> paused_;
  std::atomic<uint64_t> turns_{0};
  std::atomic<bool> stop_{false};
  std::atomic<hsa_status_t> error_{HSA_STATUS_SUCCESS};
  std::atomic<uint64_t> completed_count_{0};
  mutable std::mutex mutex_;
  std::vector<Completed> completed_;
  std::vector<uint64_t> doorbells_;
  std::thread thread_;  // last: the thread starts when all other members exist
};

}  // namespace uptempo::test
