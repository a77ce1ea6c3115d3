#include "test/support/queue_double.hpp"

#include <cstddef>
#include <cstring>

namespace uptempo::test {

SignalDouble::SignalDouble(hsa_signal_value_t value) : abi_(std::make_unique<amd_signal_t>()) {
  abi_->kind = AMD_SIGNAL_KIND_USER;
  abi_->value = value;
}

hsa_signal_value_t SignalDouble::value() const noexcept {
  return std::atomic_ref(const_cast<int64_t&>(abi_->value)).load(std::memory_order_acquire);
}

void SignalDouble::set(hsa_signal_value_t value) noexcept {
  std::atomic_ref(const_cast<int64_t&>(abi_->value)).store(value, std::memory_order_release);
}

QueueDouble::QueueDouble(const QueueDoubleOptions& options)
    : abi_(std::make_unique<amd_queue_t>()),
      doorbell_signal_(std::make_unique<amd_signal_t>()),
      ring_(std::make_unique<aql::Packet64[]>(options.ring_size)) {
  std::memset(static_cast<void*>(ring_.get()), 0xcc, options.ring_size * sizeof(aql::Packet64));
  for (uint32_t i = 0; i < options.ring_size; ++i)
    ring_[i].word[0] = aql::first_word(aql::kInvalidHeader);

  doorbell_signal_->kind = options.doorbell_kind;
  // ROCr 6.4 names a second version of the queue here, which begins like the first.
  using QueuePointer = decltype(doorbell_signal_->queue_ptr);
  doorbell_signal_->queue_ptr = reinterpret_cast<QueuePointer>(abi_.get());
  if (options.doorbell_kind == AMD_SIGNAL_KIND_DOORBELL)
    doorbell_signal_->hardware_doorbell_ptr = &hardware_doorbell_;

  abi_->hsa_queue.type = options.type;
  abi_->hsa_queue.features = HSA_QUEUE_FEATURE_KERNEL_DISPATCH;
  abi_->hsa_queue.base_address = ring_.get();
  abi_->hsa_queue.doorbell_signal = {reinterpret_cast<uint64_t>(doorbell_signal_.get())};
  abi_->hsa_queue.size = options.ring_size;
  abi_->read_dispatch_id = options.first_index;
  abi_->write_dispatch_id = options.first_index;
  if (options.amd_layout) {
    abi_->read_dispatch_id_field_base_byte_offset = offsetof(amd_queue_t, read_dispatch_id);
  }
  doorbell().store(options.first_index - 1, std::memory_order_relaxed);
}

std::atomic_ref<uint64_t> QueueDouble::read_index() noexcept {
  return std::atomic_ref(const_cast<uint64_t&>(abi_->read_dispatch_id));
}

std::atomic_ref<uint64_t> QueueDouble::write_index() noexcept {
  return std::atomic_ref(const_cast<uint64_t&>(abi_->write_dispatch_id));
}

std::atomic_ref<uint64_t> QueueDouble::doorbell() noexcept {
  if (doorbell_signal_->kind == AMD_SIGNAL_KIND_DOORBELL)
    return std::atomic_ref(hardware_doorbell_);
  // A signed and an unsigned integer of the same size may alias.
  return std::atomic_ref(
      *reinterpret_cast<uint64_t*>(const_cast<int64_t*>(&doorbell_signal_->value)));
}

uint32_t QueueDouble::first_word(uint64_t index) noexcept {
  return std::atomic_ref(slot(index).word[0]).load(std::memory_order_acquire);
}

void QueueDouble::invalidate(uint64_t index) noexcept {
  std::atomic_ref(slot(index).word[0])
      .store(aql::first_word(aql::kInvalidHeader), std::memory_order_relaxed);
}

}  // namespace uptempo::test
