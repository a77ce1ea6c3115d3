// FlightRecorder: the last submissions of one queue, for reports about work that hangs or has
// failed. Private to engine/dispatch, engine/stream and their tests.
//
// It has a record for each submission that may be unfinished, so that the one that blocks a queue
// is never overwritten.
//
// A record is written once for each submission, and for each part of a batch longer than the ring.
// It holds what the ring does not (engine/DESIGN.md, "Flight recorder"). flight_log.hpp reads the
// rest from the ring.
//
// Thread safety: one writer at a time, the queue's owner. Any thread may read: entries() returns
// whole records only. A reader compares `total()` after it has copied a record. Every word is
// stored with release order and loaded with acquire order, so a reader that sees a word of a later
// record also sees the number before it. These orders cost nothing on x86.
// Cost: seven stores to lines that no other thread writes. No allocation, lock or load of a packet
// but of its kernel. 48 bytes for each record.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <uptempo/dispatch/flight/detail/flight_headers.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo::detail {

class FlightRecorder {
 public:
  // Records beyond the submissions that may be unfinished, for those that came before.
  static constexpr uint64_t kBefore = 64;
  struct Entry {
    uint64_t number = 0;  // of the submission in this queue, from 1 on
    uint64_t value = 0;   // on the timeline
    uint64_t first = 0;   // index of the first packet
    uint32_t packets = 0;
    FlightHeaders headers{};
    uint64_t kernel = 0;  // kernel_object of the first packet, if that is a dispatch
    CallSite site{};
  };

  // Call before the first begin(). `unfinished`: the most submissions that are unfinished at once.
  void make_records(uint64_t unfinished) { records_ = std::vector<Record>(unfinished + kBefore); }

  // Call before the first header is stored, so that a failure finds the record.
  void begin(const Entry& entry) noexcept {
    const uint64_t before = total_.load(std::memory_order_relaxed);
    last_ = last_ + 1 < records_.size() ? last_ + 1 : 0;
    Record& record = records_[last_];
    record.value.store(entry.value, std::memory_order_release);
    record.first.store(entry.first, std::memory_order_release);
    record.kernel.store(entry.kernel, std::memory_order_release);
    record.file.store(entry.site.file, std::memory_order_release);
    record.line_and_packets.store(uint64_t{entry.site.line} << 32 | entry.packets,
                                  std::memory_order_release);
    record.headers.store(entry.headers, std::memory_order_release);
    total_.store(before + 1, std::memory_order_release);
    // The packets are stored after this, by x86 in program order: see claimed().
    std::atomic_signal_fence(std::memory_order_release);
  }
  uint64_t total() const noexcept { return total_.load(std::memory_order_acquire); }
  // One past the last packet of all records. No later packet has been written to the ring.
  uint64_t claimed() const noexcept;
  // The records, oldest first: up to one less than there are, and fewer while a thread submits.
  std::vector<Entry> entries() const;

 private:
  struct Record {
    std::atomic<uint64_t> value{0}, first{0}, kernel{0};
    std::atomic<const char*> file{nullptr};
    std::atomic<uint64_t> line_and_packets{0};
    std::atomic<FlightHeaders> headers{};
  };
  std::vector<Record> records_;
  size_t last_ = SIZE_MAX;  // the writer's own: the record of submission total_, or none
  std::atomic<uint64_t> total_{0};
};

}  // namespace uptempo::detail
