// An HSA queue that publishes packets as they are, for experiments with headers that the engine's
// Queue does not allow.
//
// Slots are reused at the read index: kernels must not read their packets
// (KernelInfo::reads_packet).
//
// Errors: a packet that the device refuses, a memory fault of the agent and a signal that does not
// arrive in time are an Error at the next call.
// Thread safety: one owner, the queue's only producer.
// Lifetime: within that of the Runtime.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include <uptempo/aql/packet.hpp>
#include <uptempo/program/argument_layout.hpp>
#include <uptempo/runtime/agent.hpp>

namespace uptempo::support {

class PacketQueue {
 public:
  // Creates a queue of `packets` packets, or of as many as the agent allows. `patience` limits how
  // long publish() waits for room, and how long wait() waits while the device reads no further
  // packet of this queue. Throws Error.
  PacketQueue(const Agent& gpu, uint32_t packets, std::chrono::seconds patience);
  PacketQueue(PacketQueue&&) noexcept;
  ~PacketQueue();

  uint32_t ring_size() const noexcept;
  // hsa_queue_t::base_address.
  const void* ring() const noexcept;
  uint64_t next_index() const noexcept;
  // Facts about this queue that hidden kernel arguments need.
  const QueueFacts& facts() const noexcept;
  // Enables time stamps: from now on the device writes a packet's begin and end into its completion
  // signal. Throws Error.
  void enable_profiling();

  // Publishes all `packets`, which must be complete; waits for room where the ring is full. Returns
  // the number of doorbells rung.
  // Errors: Error, whose text names the packets by `what`.
  uint64_t publish(std::span<const aql::Packet64> packets, std::string_view what = "packets");
  // Waits until `signal` is below 1: for `spin` actively, then blocked.
  // Errors: Error, whose text names the awaited thing by `what`; also for a value below 0, with
  // which a copy reports failure.
  void wait(hsa_signal_t signal, std::string_view what, std::chrono::nanoseconds spin = {});
  // Waits until all packets in the queue are complete and their writes are visible system-wide:
  // publishes a barrier packet with system scopes. Throws Error.
  void flush(std::string_view what = "the barrier packet after all others");

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace uptempo::support
