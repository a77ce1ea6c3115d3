// The state of an SDMA queue, for reports.
#include <algorithm>
#include <atomic>
#include <utility>

#include "cp/sdma_queue.hpp"
#include "cp/signal.hpp"

namespace uptempo::vgpu {
namespace {

constexpr uint64_t kValueOffset = offsetof(amd_signal_t, value);

// The signal whose value begins at `address`, or 0.
uint64_t signal_with_value_at(AddressSpace::Reader& memory, GpuAddress address) noexcept {
  const uint64_t handle = address - kValueOffset;
  const amd_signal_t* const signal = find_signal(memory, handle);
  return signal != nullptr && signal->kind == AMD_SIGNAL_KIND_USER ? handle : 0;
}

}  // namespace

void SdmaQueue::describe(QueueSnapshot& snapshot) const {
  AddressSpace::Reader& memory = context_.memory;
  snapshot.sdma = true;
  snapshot.engine = config_.engine;
  snapshot.stopped = stopped_;
  snapshot.suspended = suspended_;
  snapshot.ring = config_.ring_bytes;
  snapshot.ring_address = config_.ring;
  snapshot.read = snapshot.next = read_;
  if (config_.doorbell != nullptr)
    snapshot.doorbell =
        std::atomic_ref<uint64_t>(*config_.doorbell).load(std::memory_order_acquire);
  snapshot.write = written_;
  if (auto* const pointer = reinterpret_cast<uint64_t*>(
          memory.translate(config_.write_pointer, sizeof(uint64_t), Access::read)))
    snapshot.write =
        std::max(written_, std::atomic_ref<uint64_t>(*pointer).load(std::memory_order_acquire));
  if (stopped_ || suspended_ || read_ >= snapshot.write) return;
  const std::byte* const ring = memory.translate(config_.ring, config_.ring_bytes, Access::read);
  if (ring == nullptr) return;
  for (uint64_t offset = read_; offset + sizeof(uint32_t) <= written_;) {
    sdma::Decoded packet = decode_at(offset, ring);
    if (packet.dwords == 0 || std::holds_alternative<sdma::Unsupported>(packet.packet)) break;
    if (const auto* atomic = std::get_if<sdma::AtomicAdd64>(&packet.packet))
      if (const uint64_t signal = signal_with_value_at(memory, atomic->address))
        snapshot.completers.push_back({.signal = signal, .index = offset});
    const uint64_t bytes = uint64_t{packet.dwords} * sizeof(uint32_t);
    snapshot.copies.push_back({offset, std::move(packet)});
    offset += bytes;
  }
  if (read_ >= written_) {
    snapshot.front = Front::doorbell;
    return;
  }
  if (waiting_ == Waiting::delay) snapshot.front = Front::delay;
  if (!fetched_) return;
  snapshot.sdma_packet = current_.name;
  const auto* const poll = std::get_if<sdma::PollMemory>(&current_.packet);
  if (poll == nullptr) return;
  PollSnapshot& polled = snapshot.poll.emplace();
  polled.address = poll->address;
  polled.reference = poll->reference;
  polled.mask = poll->mask;
  polled.function = poll->function;
  if (std::byte* const word = memory.translate(poll->address, sizeof(uint32_t), Access::read))
    polled.value = std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(word))
                       .load(std::memory_order_acquire);
  if (polled.value && sdma::poll_holds(*poll, *polled.value)) return;
  snapshot.front = Front::memory;
  // ROCr polls the two halves of a signal's value for 0.
  constexpr uint32_t kEqual = 3;
  const uint64_t signal = signal_with_value_at(memory, poll->address & ~uint64_t{7});
  if (signal == 0 || poll->function != kEqual || poll->reference != 0) return;
  snapshot.front = Front::dependencies;
  snapshot.dependencies.push_back(
      {.signal = {.handle = signal, .value = signal_value(*find_signal(memory, signal))}});
}

}  // namespace uptempo::vgpu
