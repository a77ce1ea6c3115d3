// An HSA queue with accessible ring, kernarg blocks and signals, for the rows that do not use the
// engine. All these rows share one, in turn.
//
// Thread safety: one owner, the queue's only producer.
#pragma once

#include <hsa/hsa.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <uptempo/memory/buffer.hpp>
#include <uptempo/runtime/signal.hpp>
#include "tools/bench/dispatch/row.hpp"

namespace uptempo::bench {

// The kernel's explicit arguments, as laid out in a kernarg block.
struct TallyArguments {
  uint32_t* tallies;
  uint32_t dispatch;
};

class RawQueue {
 public:
  explicit RawQueue(const Workload& workload);
  RawQueue(const RawQueue&) = delete;
  RawQueue& operator=(const RawQueue&) = delete;

  const Workload& workload() const noexcept { return workload_; }
  hsa_queue_t* queue() const noexcept { return queue_.get(); }
  hsa_kernel_dispatch_packet_t* ring() const noexcept {
    return static_cast<hsa_kernel_dispatch_packet_t*>(queue_->base_address);
  }
  uint64_t mask() const noexcept { return queue_->size - 1; }
  // The kernarg block of dispatch `i` of a load, on separate cache lines, with its arguments.
  std::byte* kernargs(uint32_t i) const noexcept {
    return kernargs_.data() + size_t{i} * kernarg_stride_;
  }
  // The signal of batch `i` of a load.
  hsa_signal_t signal(uint32_t i) const noexcept { return signals_[i].handle(); }

  // Packet of dispatch `i` of a load, with header.
  hsa_kernel_dispatch_packet_t packet(const Load& load, uint32_t i) const noexcept;

  // Sets every signal of the load to 1.
  void prepare(const Load& load) noexcept;
  void close_gate() noexcept;
  void open_gate() noexcept;
  void wait(const Load& load) const noexcept;

 private:
  struct Destroy {
    void operator()(hsa_queue_t* queue) const noexcept { hsa_queue_destroy(queue); }
  };

  const Workload& workload_;
  std::unique_ptr<hsa_queue_t, Destroy> queue_;
  size_t kernarg_stride_;
  KernargBuffer kernargs_;
  std::vector<Signal> signals_;
  Signal gate_{SignalKind::event_less, 0};
};

// Header and setup of dispatch `i` of `batch`: barrier bit on each, system scope at the batch's
// ends, agent scope between, as BatchSubmitter plans it for dispatches without declarations.
uint32_t first_word_of(uint32_t i, uint32_t batch) noexcept;

}  // namespace uptempo::bench
