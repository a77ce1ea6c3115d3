// A queue whose slots, write index and doorbell a probe moves one at a time, by HSA's functions. It
// checks nothing and waits for nothing, so that it shares no assumption about the processor with
// the engine's writer.
//
// Thread safety: one owner, the queue's only producer.
// Lifetime: within that of the Runtime.
#pragma once

#include <hsa/hsa.h>

#include <chrono>
#include <cstdint>
#include <memory>

#include <uptempo/aql/packet.hpp>
#include <uptempo/runtime/agent.hpp>
#include <uptempo/runtime/signal.hpp>

namespace uptempo::hardware {

class RawQueue {
 public:
  // Throws Error.
  RawQueue(const Agent& gpu, uint32_t packets);

  hsa_queue_t* handle() const noexcept { return queue_.get(); }
  // Stores a packet into the slot of `index`, its header last. Moves neither index nor doorbell.
  void place(uint64_t index, const aql::Packet64& packet) noexcept;
  // Moves the write index to `end`, and rings the doorbell for the packets before it.
  void admit(uint64_t end) noexcept;
  // place() and admit() at the write index. Returns the packet's index.
  uint64_t publish(const aql::Packet64& packet) noexcept;
  uint64_t read_index() const noexcept;

 private:
  struct Destroy {
    void operator()(hsa_queue_t* queue) const noexcept { hsa_queue_destroy(queue); }
  };
  std::unique_ptr<hsa_queue_t, Destroy> queue_;
};

// Waits until the signal is 0. Returns false after `longest`.
bool is_zero_within(const Signal& signal, std::chrono::milliseconds longest) noexcept;

// A barrier packet without fences. `done`: the signal that it completes, or null.
aql::Packet64 barrier_for(const Signal* done, aql::Barrier barrier = aql::Barrier::on) noexcept;

}  // namespace uptempo::hardware
