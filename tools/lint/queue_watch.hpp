// Reads the packets of one queue where its doorbell is rung, before the ring reaches the device.
//
// The thread that rings reads the ring's slots from the last packet seen up to the doorbell's
// value, at most up to the queue's write index. If another thread is reading, it only announces its
// value; the reader, or the next doorbell, then reads further. A packet that the device has already
// taken by then, or whose slot has been overwritten, is counted as missed. A slot without a packet
// ends the reading until the next doorbell.
//
// The reader calls nothing on the signals of packets: their owners may destroy them at any time.
//
// Thread safety: any thread, as named below. No function waits or allocates.
// Cost: no locked instruction while one thread rings, else one a doorbell; loads of the packet's
// line, which the producer has just written. A doorbell that announces more or less than the next
// packet also loads both indices.
#pragma once

#include <hsa/hsa.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "tools/lint/packet_rules.hpp"
#include "tools/lint/reader_role.hpp"
#include "tools/lint/signal_table.hpp"

namespace uptempo::lint {

// The calls of HSA that the reader needs; ROCr's own, or a double's.
struct QueueCalls {
  uint64_t (*read_index)(const hsa_queue_t*) = nullptr;
  uint64_t (*write_index)(const hsa_queue_t*) = nullptr;
};

// A position in a packet, in 8-byte words.
constexpr size_t packet_word(size_t offset_bytes) { return offset_bytes / sizeof(uint64_t); }

struct QueueCounts {
  uint64_t packets = 0, missed = 0, doorbells = 0;
  uint64_t read_end = 0;  // index after the last packet that was read or missed
  uint64_t rung_end = 0;  // index after the last packet whose doorbell was rung
};

class alignas(64) QueueWatch {
 public:
  // A packet like the one before it.
  struct Repeat {
    uint64_t number = 0;  // counts them; 0: it was none
    RecordNumber record = kOtherPairs;
  };
  struct Seen {
    bool any = false;                   // this call has read packets
    RecordNumber record = kOtherPairs;  // of the last one
    uint32_t new_count = 0;
    std::array<RecordNumber, 4> new_records;  // pairs seen for the first time
    uint64_t number = 0;                      // of this doorbell
  };

  // `number`: identifies the queue in the ledger.
  QueueWatch(const hsa_queue_t* queue, uint64_t number, std::string agent, const QueueCalls& calls,
             Ledger& ledger, SignalTable& signals);

  // Any thread, before the doorbell's store: repeat(), and ring() if it was none. In a loop of one
  // kernel and one doorbell a packet, a packet changes nothing but `next_` and two counts.
  Repeat repeat(uint64_t value) noexcept {
    const ReaderRole::Taken taken = role_.take_owned();
    if (taken == ReaderRole::Taken::no) return {};
    Repeat made;
    if (is_repeat(value)) [[likely]] {
      next_.store(value + 1, std::memory_order_relaxed);
      made = {repeats_.load(std::memory_order_relaxed) + 1, record_};
      repeats_.store(made.number, std::memory_order_relaxed);
      repeat_count_->store(repeat_count_->load(std::memory_order_relaxed) + 1,
                           std::memory_order_relaxed);
    }
    role_.give_back(taken);
    return made;
  }
  Seen ring(uint64_t value) noexcept;
  // Any thread: a wait of the host for the signal of packet `index` has ended. It has drained the
  // queue if it was not met at its begin and no doorbell for a later packet has been rung.
  // `nanoseconds`: its duration; no value if it was met at its begin.
  void waited(uint64_t index, std::optional<uint64_t> nanoseconds) noexcept;
  // Any thread: all packets below `end` are complete.
  void complete(uint64_t end) noexcept;

  const hsa_queue_t* queue() const { return queue_; }
  uint64_t id() const { return id_; }
  const std::string& agent() const { return agent_; }
  QueueCounts counts() const noexcept;

 private:
  // The words of a packet that the lint needs.
  struct Packet {
    uint32_t header = 0;
    uint64_t kernel = 0;  // a kernel object or a PacketKind
    uint64_t kernarg = 0, completion_signal = 0;
    size_t dependency_count = 0;
    std::array<uint64_t, 5> dependencies;  // 0: none
  };

  uint64_t end_of(uint64_t value) noexcept;
  bool may_be_taken(uint64_t index) const noexcept;
  void read(uint64_t end, Seen& seen) noexcept;
  static void copy(const uint64_t* slot, Packet& packet) noexcept;
  void process(const Packet& packet, uint64_t index, Seen& seen) noexcept;
  RecordNumber find_record(uint64_t kernel, Seen& seen) noexcept;

  // Positions in a packet.
  static constexpr size_t kKernelObject =
      packet_word(offsetof(hsa_kernel_dispatch_packet_t, kernel_object));
  static constexpr size_t kKernarg =
      packet_word(offsetof(hsa_kernel_dispatch_packet_t, kernarg_address));
  static constexpr size_t kCompletion =
      packet_word(offsetof(hsa_kernel_dispatch_packet_t, completion_signal));

  // Whether the doorbell is for one packet that is like the one before, with nothing between them.
  bool is_repeat(uint64_t value) const noexcept {
    if (value != next_.load(std::memory_order_relaxed) || value >= repeat_end_ ||
        waits_.load(std::memory_order_relaxed) != repeat_waits_ ||
        announced_.load(std::memory_order_relaxed) != announced_seen_)
      return false;
    uint64_t* const slot = ring_ + (value & mask_) * 8;
    // The producer releases the header.
    if (std::atomic_ref(*reinterpret_cast<uint32_t*>(slot)).load(std::memory_order_acquire) !=
        repeat_header_)
      return false;
    const auto load = [slot](size_t position) {
      return std::atomic_ref(slot[position]).load(std::memory_order_relaxed);
    };
    return load(kKernelObject) == repeat_kernel_ && load(kCompletion) == 0 &&
           load(kKernarg) % 64 == 0;
  }
  void learn(const Seen& seen) noexcept;

  // A repeat needs the first two cache lines. Only the reader stores the members that no comment
  // gives to others; others load the atomic ones.
  ReaderRole role_;
  std::atomic<uint64_t> next_;  // to read
  std::atomic<uint64_t> repeats_{0};
  uint64_t repeat_kernel_ = 0;
  uint64_t repeat_end_ = 0;  // 0: the last doorbell was another one, or its slots are used up
  uint64_t* const ring_;
  const uint32_t mask_;
  uint32_t repeat_header_ = 0;

  // Doorbells that came while another thread was reading. Any thread.
  std::atomic<uint64_t> announced_{0};
  // Waits for signals of this queue. Any thread.
  std::atomic<uint64_t> waits_{0};
  uint64_t announced_seen_ = 0;
  uint64_t repeat_waits_ = 0;
  std::atomic<uint64_t>* repeat_count_ = nullptr;
  RecordNumber record_ = kOtherPairs;  // of the last packet
  bool last_is_plain_ = false;         // it was a dispatch without signal and system fences

  // Any thread: the highest value of announced doorbells, + 1; waits that have drained the queue,
  // and their time.
  std::atomic<uint64_t> announced_end_{0}, drains_{0}, drained_ns_{0}, complete_end_{0};

  const hsa_queue_t* const queue_;
  const uint64_t id_, number_;
  const std::string agent_;
  const QueueCalls calls_;
  Ledger& ledger_;
  SignalTable& signals_;

  std::atomic<uint64_t> rung_end_;
  std::atomic<uint64_t> rings_{0}, packets_{0}, missed_{0};  // without repeats_
  PacketRules rules_;
  Pair pair_;  // the last one
  uint64_t waits_at_ring_ = ~uint64_t{0};
  uint64_t waits_seen_ = 0, drains_seen_ = 0, drained_ns_seen_ = 0;
  uint64_t started_end_ = 0;  // packets below may have started
  uint64_t taken_end_ = 0;    // the device has taken those below
  bool is_behind_ = false;    // packets whose doorbell was rung are still to be read
};

}  // namespace uptempo::lint
