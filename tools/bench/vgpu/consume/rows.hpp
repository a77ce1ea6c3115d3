// The measurements, one function per kind.
//
// Errors: std::runtime_error if the device did not complete exactly the packets that it was given.
// Thread safety: one owner.
#pragma once

#include <span>
#include <stdexcept>
#include <vector>

#include "tools/bench/vgpu/consume/gpu.hpp"
#include "tools/bench/vgpu/consume/shares.hpp"

namespace uptempo::vgpu::consume {

// Another thread used this thread's core while the device worked, so nothing was measured. The
// caller repeats the measurement.
struct Interrupted : std::runtime_error {
  Interrupted()
      : std::runtime_error(
            "the device finished before this thread could observe it: other threads use this "
            "core") {}
};

// `event`: a barrier whose signal has an event, as hsa_signal_create() makes them; for round trips.
enum class Kind { barrier, dispatch, event };

class Measurer {
 public:
  explicit Measurer(const Gpu& gpu);

  // A ring of `kRing` packets, for floors that need the same memory.
  Queue& ring_queue() noexcept { return ring_; }
  Packet packet(Kind kind, hsa_signal_t completion = {0}) const {
    return kind == Kind::dispatch ? null_dispatch(gpu_, completion) : empty_barrier(completion);
  }

  // Nanoseconds per packet of a ring that was full before the device could start.
  double full_ring(Kind kind);
  // The same while this thread keeps the ring full: `rings` times its size, with a doorbell every
  // 64 packets.
  double fed_ring(Kind kind, unsigned rings);

  // Nanoseconds from the first store of a packet until its completion is visible, one packet at a
  // time. With `pause_us`, the caller pauses first and the device sleeps for most of that time.
  std::vector<double> trips(Kind kind, size_t count, unsigned pause_us = 0);
  // For the last trips() with a pause: nanoseconds until the doorbell's store returned.
  std::span<const double> doorbells() const noexcept { return doorbell_ns_; }

  struct Busy {
    double ns_per_packet;
    Fairness fairness;
  };
  // Works off queues that start full with `packets` each; nothing is added. Reads the read indices
  // every 20 us.
  Busy busy_queues(size_t queues, uint32_t packets);

  struct Beside {
    std::vector<double> trips;
    std::vector<double> overtaken;  // packets of the busy queues that completed during a trip
  };
  // Trips on a separate queue while `queues` others work off `packets` dispatches each.
  Beside trips_beside(size_t queues, uint32_t packets);

  // The device's processor time, in nanoseconds, for a packet that wakes it and leaves it idle
  // afterwards.
  double lone_packet_cpu_ns(unsigned packets);
  // Share of a core that an idle device uses with `queues` open queues.
  double idle_share(size_t queues, unsigned milliseconds);

  static constexpr uint32_t kRing = 16384;
  static constexpr uint64_t kWindow = 512;  // packets per queue in a fairness window

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
