// The counts of each pair of packets that follow each other in a queue, and sampled call sites.
//
// A kernel is known by its kernel object, a packet of another kind by a PacketKind. Each queue has
// records of its own, so that the one thread that reads its packets counts without locked
// instructions. Both tables have a fixed size. What no longer fits is counted in record 0.
//
// Thread safety: any thread, but add() only on the thread that reads the record's queue. No
// function waits or allocates. Record 0 belongs to all queues, and may lose counts.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tools/lint/counts.hpp"

namespace uptempo::lint {

// Below the address of any kernel object.
enum class PacketKind : uint64_t {
  nothing,  // before the first packet of a queue
  unseen,   // packets that the lint could not read
  barrier_and,
  barrier_or,
  barrier_value,
  vendor,  // other vendor-specific packets
  agent_dispatch,
  unknown,
};
constexpr uint64_t kPacketKinds = static_cast<uint64_t>(PacketKind::unknown) + 1;

struct Pair {
  uint64_t before = 0, packet = 0;  // kernel objects or PacketKinds
  uint64_t queue = 0;               // a number of the lint's own
  friend auto operator<=>(const Pair&, const Pair&) = default;
};

using RecordNumber = uint32_t;
constexpr RecordNumber kOtherPairs = 0;

class Ledger {
 public:
  static constexpr size_t kRecords = 4096, kSites = 8192;

  struct Found {
    RecordNumber record;
    bool is_new;
  };
  Found find(const Pair& pair) noexcept;

  void add(RecordNumber record, Count count, uint64_t amount = 1) noexcept {
    auto& to = records_[record].counts[static_cast<size_t>(count)];
    to.store(to.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  // Counts packets that have a lone doorbell and no other finding.
  std::atomic<uint64_t>& repeats(RecordNumber record, bool barrier) noexcept {
    return records_[record].repeats[barrier ? 1 : 0];
  }
  // Any thread. The same count must not be added with add().
  void add_shared(RecordNumber record, Count count, uint64_t amount) noexcept {
    records_[record].counts[static_cast<size_t>(count)].fetch_add(amount,
                                                                  std::memory_order_relaxed);
  }
  // `place`: of call_site().
  void add_site(RecordNumber record, uint64_t place) noexcept;

  // use(const Pair&, RecordNumber, const std::array<uint64_t, kCountCount>&)
  template <typename Use>
  void for_each_record(Use use) const {
    for (RecordNumber number = 0; number < kRecords; ++number) {
      const Record& record = records_[number];
      if (number != kOtherPairs && record.state.load(std::memory_order_acquire) != kFilled)
        continue;
      std::array<uint64_t, kCountCount> counts{};
      for (size_t i = 0; i < kCountCount; ++i)
        counts[i] = record.counts[i].load(std::memory_order_relaxed);
      const uint64_t with_barrier = record.repeats[1].load(std::memory_order_relaxed);
      const uint64_t repeats = record.repeats[0].load(std::memory_order_relaxed) + with_barrier;
      counts[static_cast<size_t>(Count::barrier_bits)] += with_barrier;
      for (const Count count : {Count::packets, Count::doorbells, Count::lone_doorbells})
        counts[static_cast<size_t>(count)] += repeats;
      use(record.pair, number, counts);
    }
  }
  // use(RecordNumber, uint64_t place, uint64_t samples)
  template <typename Use>
  void for_each_site(Use use) const {
    for (const Site& site : sites_)
      if (site.state.load(std::memory_order_acquire) == kFilled)
        use(site.record, site.place, site.samples.load(std::memory_order_relaxed));
  }

 private:
  enum : uint32_t { kFree, kBeingFilled, kFilled };
  struct Record {
    std::atomic<uint32_t> state{kFree};
    std::array<std::atomic<uint64_t>, 2> repeats{};  // without and with a barrier bit
    Pair pair;                                       // written before kFilled
    std::array<std::atomic<uint64_t>, kCountCount> counts{};
  };
  struct Site {
    std::atomic<uint32_t> state{kFree};
    RecordNumber record = 0;
    uint64_t place = 0;
    std::atomic<uint64_t> samples{0};
  };
  static constexpr size_t kProbes = 32;

  std::array<Record, kRecords> records_;
  std::array<Site, kSites> sites_;
};

}  // namespace uptempo::lint
