// The memory of an HSA queue and of HSA signals, allocated in this process, for tests without a
// device.
//
// QueueDouble is an amd_queue_t with ring and doorbell in ROCr's layout. AqlQueueWriter::borrow()
// accepts it unchanged. A RingReader, a PacketProcessor or the test itself takes the packets out.
//
// Thread safety: access indices, doorbell and signal values through std::atomic_ref, as a device
// does.
#pragma once

#include <hsa/amd_hsa_queue.h>
#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include <uptempo/aql/packet.hpp>

namespace uptempo::test {

class SignalDouble {
 public:
  explicit SignalDouble(hsa_signal_value_t value = 1);
  SignalDouble(const SignalDouble&) = delete;
  SignalDouble& operator=(const SignalDouble&) = delete;

  hsa_signal_t handle() const noexcept { return {reinterpret_cast<uint64_t>(abi_.get())}; }
  hsa_signal_value_t value() const noexcept;    // acquire
  void set(hsa_signal_value_t value) noexcept;  // release
  amd_signal_t& abi() noexcept { return *abi_; }

 private:
  std::unique_ptr<amd_signal_t> abi_;
};

struct QueueDoubleOptions {
  uint32_t ring_size = 64;  // packets, a power of two
  hsa_queue_type32_t type = HSA_QUEUE_TYPE_MULTI;
  // AMD_SIGNAL_KIND_DOORBELL: stores go to doorbell(). AMD_SIGNAL_KIND_USER: the doorbell of a
  // profiler, whose value is doorbell().
  amd_signal_kind_t doorbell_kind = AMD_SIGNAL_KIND_DOORBELL;
  // False: the queue does not record the address of its read index, like a queue of another vendor.
  bool amd_layout = true;
  // Initial value of both indices. Values near 2^32 or 2^64 expose arithmetic that is not modular.
  uint64_t first_index = 0;
};

class QueueDouble {
 public:
  explicit QueueDouble(const QueueDoubleOptions& options = {});
  QueueDouble(const QueueDouble&) = delete;
  QueueDouble& operator=(const QueueDouble&) = delete;

  hsa_queue_t* queue() noexcept { return &abi_->hsa_queue; }
  amd_queue_t& abi() noexcept { return *abi_; }
  uint32_t ring_size() const noexcept { return abi_->hsa_queue.size; }
  // The slot of packet `index`. In a fresh ring the first word is INVALID with setup 0; every other
  // byte is 0xcc.
  aql::Packet64& slot(uint64_t index) noexcept { return ring_[index & (ring_size() - 1)]; }

  std::atomic_ref<uint64_t> read_index() noexcept;
  std::atomic_ref<uint64_t> write_index() noexcept;
  std::atomic_ref<uint64_t> doorbell() noexcept;  // first_index - 1 until the first ring
  hsa_signal_t doorbell_signal() noexcept { return queue()->doorbell_signal; }

  // The first word of a slot, as a processor polls it.
  uint32_t first_word(uint64_t index) noexcept;  // acquire
  // Frees a slot as a packet processor does: sets its header to INVALID. The caller moves the read
  // index.
  void invalidate(uint64_t index) noexcept;

 private:
  std::unique_ptr<amd_queue_t> abi_;
  std::unique_ptr<amd_signal_t> doorbell_signal_;
  std::unique_ptr<aql::Packet64[]> ring_;
  alignas(64) uint64_t hardware_doorbell_ = 0;
};

}  // namespace uptempo::test
