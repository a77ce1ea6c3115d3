// An HSA queue for packets that are sent as they are: experiments with headers, which the engine's Queue would not let through.
//
// What fails is an Error at the next call: a packet that the device refuses, a memory fault of the agent, and a signal that does not come in time.
//
// Thread safety: one owner, the queue's only producer. Lifetime: within that of the Runtime.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "aql/packet.hpp"
#include "engine/program/arguments.hpp"
#include "engine/runtime/agent.hpp"

namespace uptempo::support {

class PacketQueue {
 public:
  // Of `packets` packets, or of as many as the agent allows. `patience` is how long a publication may wait for room, and anything for a signal. Throws Error.
  PacketQueue(const Agent& gpu, uint32_t packets, std::chrono::seconds patience);
  PacketQueue(PacketQueue&&) noexcept;
  ~PacketQueue();

  uint32_t ring_size() const noexcept;
  // hsa_queue_t::base_address.
  const void* ring() const noexcept;
  // The index that the next packet will get.
  uint64_t next_index() const noexcept;
  // What hidden arguments say about this queue.
  const QueueFacts& facts() const noexcept;
  // From now on the device writes begin and end of a packet into its completion signal. Throws Error.
  void enable_profiling();

  // Finished packets, all of them; waits for room where there is none. Returns the number of doorbells rung. Throws Error.
  uint64_t publish(std::span<const aql::Packet64> packets);
  // Until `signal` is below 1: for `spin` on the processor, then asleep. Throws Error, which calls what is waited for `what`; so for a signal below 0, with which a copy
  // reports that it has failed.
  void wait(hsa_signal_t signal, std::string_view what, std::chrono::nanoseconds spin = {});
  // Until everything in the queue is complete, and visible to everybody: a barrier packet with system scopes. Throws Error.
  void flush(std::string_view what = "the barrier packet behind everything");

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace uptempo::support
