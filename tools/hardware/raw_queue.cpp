#include "tools/hardware/raw_queue.hpp"

#include <algorithm>
#include <thread>

#include <uptempo/runtime/error.hpp>

namespace uptempo::hardware {

RawQueue::RawQueue(const Agent& gpu, uint32_t packets) {
  hsa_queue_t* queue = nullptr;
  check(hsa_queue_create(gpu.handle(), packets, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, UINT32_MAX,
                         UINT32_MAX, &queue),
        "hsa_queue_create", "a queue for a probe");
  queue_.reset(queue);
}

void RawQueue::place(uint64_t index, const aql::Packet64& packet) noexcept {
  auto* const slots = static_cast<aql::Packet64*>(queue_->base_address);
  aql::Packet64& slot = slots[index & (queue_->size - 1)];
  const uint32_t first = aql::fill(&slot, packet);
  // release: the processor reads the rest once it sees the header
  __atomic_store_n(slot.word.data(), first, __ATOMIC_RELEASE);
}

void RawQueue::admit(uint64_t end) noexcept {
  hsa_queue_store_write_index_screlease(queue_.get(), end);
  hsa_signal_store_screlease(queue_->doorbell_signal, static_cast<hsa_signal_value_t>(end - 1));
}

uint64_t RawQueue::publish(const aql::Packet64& packet) noexcept {
  const uint64_t index = hsa_queue_load_write_index_relaxed(queue_.get());
  place(index, packet);
  admit(index + 1);
  return index;
}

uint64_t RawQueue::read_index() const noexcept {
  return hsa_queue_load_read_index_scacquire(queue_.get());
}

bool is_zero_within(const Signal& signal, std::chrono::milliseconds longest) noexcept {
  const auto end = std::chrono::steady_clock::now() + longest;
  while (hsa_signal_load_scacquire(signal.handle()) != 0) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

aql::Packet64 barrier_for(const Signal* done, aql::Barrier barrier) noexcept {
  return aql::to_packet(
      aql::BarrierAnd{.flags = {barrier, aql::FenceScope::none, aql::FenceScope::none},
                      .completion_signal = done == nullptr ? hsa_signal_t{0} : done->handle()});
}

}  // namespace uptempo::hardware
