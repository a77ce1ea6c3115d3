// What is measured, one function for each kind. All check that the device has completed exactly the packets that they gave it and throw
// std::runtime_error otherwise.
//
// Thread safety: one owner.
#pragma once

#include <span>
#include <stdexcept>
#include <vector>

#include "tools/bench/vgpu/consume/gpu.hpp"
#include "tools/bench/vgpu/consume/shares.hpp"

namespace uptempo::vgpu::consume {

// Another thread had this one's core while the device was at work, so that nothing was measured. To be done again.
struct Interrupted : std::runtime_error {
  Interrupted()
      : std::runtime_error(
            "the device was done before this thread could look: its core is wanted by others") {}
};

// `event`: a barrier whose signal has an event, as hsa_signal_create() makes them; for round trips.
enum class Kind { barrier, dispatch, event };

class Measurer {
 public:
  explicit Measurer(const Gpu& gpu);

  // A ring of `kRing` packets, for floors that want the same memory.
  Queue& ring_queue() noexcept { return ring_; }
  Packet packet(Kind kind, hsa_signal_t completion = {0}) const {
    return kind == Kind::dispatch ? null_dispatch(gpu_, completion) : empty_barrier(completion);
  }

  // Nanoseconds per packet of a ring that was full before the device was let at it.
  double full_ring(Kind kind);
  // The same while this thread keeps the ring full: `rings` times its size, a doorbell for each 64 packets.
  double fed_ring(Kind kind, unsigned rings);

  // Nanoseconds from the first store of a packet until its completion is seen, one packet at a time. With `pause_us`: after the device has slept for most of it.
  std::vector<double> trips(Kind kind, size_t count, unsigned pause_us = 0);
  // Of the last trips() with a pause: until the doorbell's store was over.
  std::span<const double> doorbells() const noexcept { return doorbell_ns_; }

  struct Busy {
    double ns_per_packet;
    Fairness fairness;
  };
  // All of them begin full, `packets` each, and nothing is added. Looked at every 20 us.
  Busy busy_queues(size_t queues, uint32_t packets);

  struct Beside {
    std::vector<double> trips;
    std::vector<double> overtaken;  // packets of the busy queues that were carried out during a trip
  };
  // Trips on a queue of its own while `queues` others work off `packets` dispatches each.
  Beside trips_beside(size_t queues, uint32_t packets);

  // Processor time of the device, in nanoseconds, for a packet that wakes it and after which it may sleep again.
  double lone_packet_cpu_ns(unsigned packets);
  // Share of a core that the device uses with `queues` open and nothing to do.
  double idle_share(size_t queues, unsigned milliseconds);

  static constexpr uint32_t kRing = 16384;
  static constexpr uint64_t kWindow = 512;  // packets of each queue, over which its share is looked at

 private:
  class Expect;

  void fill(Queue& queue, const Packet& packet, uint64_t count);
  double trip(Kind kind, double* doorbell_ns = nullptr);

  const Gpu& gpu_;
  Queue ring_, single_;
  Signal gate_, begun_, done_;
  Signal event_done_{true};
  std::vector<double> doorbell_ns_;
};

}  // namespace uptempo::vgpu::consume
