// An SDMA queue: packets of dwords in a byte ring, executed one after the other.
//
// The doorbell holds the write pointer in bytes, monotonic. The read pointer follows packet by
// packet. Packets execute strictly in order. A poll that does not hold yet, and a copy larger than
// one turn's share, resume in the next turn, so neither blocks other queues.
//
// Errors: an unsupported packet, or one that accesses memory outside the address space, stops the
// queue. One line on stderr reports it. A bad address is also a GPU memory fault.
#pragma once

#include <array>

#include "cp/command_processor.hpp"
#include "cp/packet/sdma_packet.hpp"
#include "cp/queue.hpp"

namespace uptempo::vgpu {

class SdmaQueue final : public Queue {
 public:
  // Maximum per turn, so that a copy does not delay the other queues. 64 KiB take some 5 us.
  static constexpr uint64_t kBytesPerTurn = 64 * 1024;
  static constexpr unsigned kPacketsPerTurn = 64;

  SdmaQueue(QueueContext& context, uint32_t ordinal, const SdmaQueueConfig& config);

  bool advance() override;
  bool abandon() override {  // nothing runs outside advance()
    stopped_ = true;
    return true;
  }
  bool executing() const noexcept override { return false; }
  bool at_rest() const noexcept override {
    return stopped_ || suspended_ || waiting_ != Waiting::delay;
  }
  void lose_doorbell() noexcept override { config_.doorbell = nullptr; }
  const uint64_t* doorbell() const noexcept override { return config_.doorbell; }
  void describe(QueueSnapshot& snapshot) const override;
  void describe_waves(QueueSnapshot&, Scheduler::Residents&) const override {}
  void suspend(bool suspended) noexcept { suspended_ = suspended; }

 private:
  enum class Outcome { done, again, blocked, stopped };

  bool fetch();
  uint32_t dword_at(uint64_t offset) const;
  sdma::Decoded decode_at(uint64_t offset) const;
  sdma::Decoded decode_at(uint64_t offset, const std::byte* ring) const;
  template <class Use>
  void look_ahead(uint64_t offset, Use use) const;
  void expect_copies(uint64_t from);
  void count_interrupt_ahead();
  Outcome execute(uint64_t& budget);
  Outcome run(const sdma::CopyLinear& copy, uint64_t& budget);
  Outcome run(const sdma::CopyRect& copy, uint64_t& budget);
  Outcome run(const sdma::ConstFill& fill, uint64_t& budget);
  Outcome run(const sdma::WriteLinear& write, uint64_t& budget);
  Outcome run(const sdma::PollMemory& poll);
  Outcome store(GpuAddress address, const void* value, size_t size_bytes);
  // Copies up to `bytes`, limited by both mappings and the budget. Returns 0 after a fault, which
  // stops the queue.
  uint64_t copy_some(GpuAddress destination, GpuAddress source, uint64_t bytes, uint64_t budget);
  void fault(GpuAddress address, Access access);
  void stop(std::string_view reason);
  void finish_packet();

  SdmaQueueConfig config_;
  uint64_t written_ = 0;  // the doorbell's limit
  uint64_t doorbell_seen_ = 0;
  uint64_t read_ = 0;
  uint64_t interrupts_counted_to_ = 0;  // the device has counted those of earlier packets
  bool suspended_ = false;
  bool stopped_ = false;

  std::byte* ring_ = nullptr;  // valid inside one turn
  uint64_t* read_pointer_ = nullptr;

  bool fetched_ = false;  // current_ is the packet at read_
  sdma::Decoded current_{};
  uint64_t progress_ = 0;  // bytes of current_ already done
  uint64_t start_ns_ = 0;
};

}  // namespace uptempo::vgpu
