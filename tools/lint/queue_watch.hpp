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
// Cost: no locked instruction while one thread rings, else one a doorbell; loads of the packet's line, which the producer has just
// written. A doorbell that announces more or less than the next packet also loads both indices.
#pragma once

#include <hsa/hsa.h>

#include <array>
#include <atomic>
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

struct QueueCounts {
  uint64_t packets = 0, missed = 0, doorbells = 0;
  uint64_t read_end = 0;  // index after the last packet that was read or missed
  uint64_t rung_end = 0;  // index after the last packet whose doorbell was rung
};

class QueueWatch {
 public:
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

  // Any thread, before the doorbell's store.
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

  const hsa_queue_t* const queue_;
  const uint64_t id_, number_, mask_;
  const std::string agent_;
  const QueueCalls calls_;
  Ledger& ledger_;
  SignalTable& signals_;

  bool repeats(uint64_t value) noexcept;
  void learn(const Seen& seen) noexcept;

  ReaderRole role_;
  // Doorbells that came while another thread was reading: their number and highest value, + 1.
  std::atomic<uint64_t> announced_{0}, announced_end_{0};
  // Waits for signals of this queue; those that have drained it, and their time.
  std::atomic<uint64_t> waits_{0}, drains_{0}, drained_ns_{0};
  std::atomic<uint64_t> complete_end_{0};

  // Only the reader stores the members below. Others load the atomic ones.
  std::atomic<uint64_t> next_;  // to read
  std::atomic<uint64_t> rung_end_;
  std::atomic<uint64_t> rings_{0}, packets_{0}, missed_{0};  // without repeats_
  // A loop of one kernel and one doorbell a packet. Its packets change nothing but these counts, the
  // record's, and `next_`.
  std::atomic<uint64_t> repeats_{0};
  uint64_t repeat_kernel_ = 0;  // 0: the last doorbell was another one
  uint64_t repeat_waits_ = 0;
  uint32_t repeat_header_ = 0;
  bool last_is_plain_ = false;  // the last packet was a dispatch without signal and system fences
  PacketRules rules_;
  Pair pair_;  // the last one
  RecordNumber record_ = kOtherPairs;
  uint64_t waits_at_ring_ = ~uint64_t{0};
  uint64_t waits_seen_ = 0, drains_seen_ = 0, drained_ns_seen_ = 0;
  uint64_t started_end_ = 0;  // packets below may have started
  uint64_t taken_end_ = 0;    // the device has taken those below
  uint64_t announced_seen_ = 0;
  bool is_behind_ = false;  // packets whose doorbell was rung are still to be read
};

}  // namespace uptempo::lint
