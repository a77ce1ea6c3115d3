// An SDMA queue: packets of dwords in a byte ring, executed one after the other.
//
// The doorbell holds the write pointer in bytes, monotonic; the read pointer follows packet by packet. Packets execute strictly in order; a poll
// that does not hold yet, and a copy larger than one turn's share, are resumed in the next turn, so neither holds up other queues.
//
// Errors. An unsupported packet, or one that reads or writes outside the address space, stops the queue; one line on stderr says which. A bad
// address is a GPU memory fault as well.
#pragma once

#include <array>

#include "cp/command_processor.hpp"
#include "cp/queue.hpp"
#include "cp/sdma_packet.hpp"

namespace uptempo::vgpu {

class SdmaQueue final : public Queue {
 public:
  // At most, so that a copy does not hold up the other queues. 64 KiB take some 5 us.
  static constexpr uint64_t kBytesPerTurn = 64 * 1024;
  static constexpr unsigned kPacketsPerTurn = 64;

  SdmaQueue(QueueContext& context, uint32_t ordinal, const SdmaQueueConfig& config);

  bool advance() override;
  bool abandon() override { return true; }  // nothing of it runs outside advance()
  bool executing() const noexcept override { return false; }
  void lose_doorbell() noexcept override { config_.doorbell = nullptr; }
  const uint64_t* doorbell() const noexcept override { return config_.doorbell; }
  void suspend(bool suspended) noexcept { suspended_ = suspended; }

 private:
  enum class Outcome { done, again, blocked, stopped };

  bool fetch();
  sdma::Decoded decode_at(uint64_t offset) const;
  void expect_copies(uint64_t from);
  Outcome execute(uint64_t& budget);
  Outcome run(const sdma::CopyLinear& copy, uint64_t& budget);
  Outcome run(const sdma::CopyRect& copy, uint64_t& budget);
  Outcome run(const sdma::ConstFill& fill, uint64_t& budget);
  Outcome run(const sdma::PollMemory& poll);
  Outcome store(GpuAddress address, const void* value, size_t size_bytes);
  // Copies up to `bytes`, no farther than both mappings reach and the budget allows. 0: a fault, the queue is stopped.
  uint64_t copy_some(GpuAddress destination, GpuAddress source, uint64_t bytes,
                          uint64_t budget);
  void fault(GpuAddress address, Access access);
  void stop(std::string_view reason);
  void finish_packet();

  SdmaQueueConfig config_;
  uint64_t written_ = 0;  // how far the doorbell allows
  uint64_t doorbell_seen_ = 0;
  uint64_t read_ = 0;
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
