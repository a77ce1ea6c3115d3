// The rules that find superfluous fences and barrier bits in the packets of one queue.
//
// Acquire. The system acquire of packet P is wide, and agent scope is enough, if
//   * an earlier packet A of the same doorbell acquired at system scope, and
//   * the device had not taken A when P's header was seen: no earlier doorbell and none of another
//     thread covered A, and the queue's read index had not passed A, and
//   * no packet after A, up to P, waits for a signal, and none is vendor-specific or unread.
//   The host has written all that P may read before P's header, so before A's acquire. Work of
//   others that P depends on needs a signal.
//
// Release. The system release of packet P is wide, and agent scope is enough, if
//   * P has no completion signal, and
//   * the first later packet with a completion signal that a barrier bit after P, or its own,
//     orders behind P releases at system scope, and
//   * no packet up to it is vendor-specific, an agent dispatch, or unread.
//   Until that signal nothing outside of the agent can know that P has completed.
//
// Barrier. The barrier bit of packet P has no effect if all earlier packets are known to be
// complete because the host waited for the signal of the last one, or if the packet directly before
// is a barrier-AND or barrier-OR packet with a barrier bit: the processor starts nothing before
// such a packet is complete.
//
// What packets do not tell, and the rules do not know: which memory a kernel touches; kernels and
// host code that synchronise by memory instead of signals while kernels run. A release that such
// code relies on is reported as wide.
//
// Thread safety: one thread at a time.
#pragma once

#include <array>
#include <cstdint>

#include "tools/lint/ledger.hpp"

namespace uptempo::lint {

// Records with a number each. Beyond its size it forgets, so less is found.
class Tally {
 public:
  void add(RecordNumber record, uint32_t count = 1) noexcept;
  void add_all(const Tally& other) noexcept {
    for (size_t i = 0; i < other.size_; ++i) add(other.items_[i].record, other.items_[i].count);
  }
  void count_in(Ledger& ledger, Count count) const noexcept {
    for (size_t i = 0; i < size_; ++i) ledger.add(items_[i].record, count, items_[i].count);
  }
  void clear() noexcept { size_ = 0; }
  bool empty() const noexcept { return size_ == 0; }

 private:
  struct Item {
    RecordNumber record;
    uint32_t count;
  };
  std::array<Item, 32> items_;
  size_t size_ = 0;
};

struct PacketFacts {
  RecordNumber record = kOtherPairs;
  bool opaque = false;   // vendor-specific, agent dispatch or unknown: anything may happen in it
  bool holds = false;    // barrier-AND or barrier-OR: nothing starts before it is complete
  bool waits = false;    // depends on signals
  bool signals = false;  // has a completion signal
  bool barrier = false, system_acquire = false, system_release = false;
  bool all_before_complete = false;    // known by a wait of the host
  bool starts_after_doorbell = false;  // no earlier doorbell covered it
  uint64_t index = 0;
};

class PacketRules {
 public:
  void begin_doorbell() noexcept { acquirer_ = kNone; }
  void packet(const PacketFacts& facts, Ledger& ledger) noexcept;
  // The same for most packets of most programs: a dispatch without signal and system fences.
  void plain_dispatch(RecordNumber record, bool barrier, bool all_before_complete,
                      Ledger& ledger) noexcept {
    if (barrier) {
      if (all_before_complete || held_) ledger.add(record, Count::idle_barriers);
      if (!releases_.empty()) {
        ordered_.add_all(releases_);
        releases_.clear();
      }
    }
    held_ = false;
  }
  // Whether acquires of this doorbell's packets are wide, if end_doorbell() confirms it.
  bool has_wide_acquires() const noexcept { return first_acquirer_ != kNone; }
  // `alone`: no other thread has rung. `read_index`: the queue's, loaded now; only needed with wide
  // acquires.
  void end_doorbell(bool alone, uint64_t read_index, Ledger& ledger) noexcept;
  // Packets that could not be read.
  void gap() noexcept;

 private:
  static constexpr uint64_t kNone = ~uint64_t{0};

  uint64_t acquirer_ = kNone;        // packet A
  uint64_t first_acquirer_ = kNone;  // the first A that a wide acquire relies on
  Tally wide_acquires_;              // if A had not been taken
  Tally releases_;                   // without a signal, and without a later barrier bit
  Tally ordered_;                    // without a signal, before the last barrier bit
  bool held_ = false;                // the last packet holds, with a barrier bit
};

}  // namespace uptempo::lint
