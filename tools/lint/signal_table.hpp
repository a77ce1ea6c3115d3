// What is known of signals: the doorbells of queues, and completion signals of packets.
//
// A use of a signal is a call that reads or waits for it: a load, a wait, an exchange, a handler, a
// dependency of a packet or copy, a query of its times. A life of a completion signal begins where
// the host sets its value, by creation, store or exchange, and ends where the host sets it again or
// destroys the signal. If there was no use in a life, no call reads the signals of the packets
// attached in it. Additions and compare-and-exchange change the armed value within a life.
//
// A program may read and re-arm a signal in its memory instead. A signal that was attached more
// than once in a life and then holds another value than that many completions leave was re-armed
// so. `rearmed()` counts them; unused signals of such a program are not known. A life in which a
// call or attachment was lost, whose value is not known, or that ends while packets are still to be
// read (they may wait for the signal), is not judged.
//
// The table calls nothing on a signal: the program may destroy it once its packet is complete. The
// number of the life tells a late attachment from one in time.
//
// The table has a fixed size. A signal that does not fit is not followed; `not_followed()` counts.
//
// Thread safety: any thread; no function waits or allocates. Two threads that change the same
// signal at the same time: one of the two changes is lost, and the life is not judged.
#pragma once

#include <hsa/hsa.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "tools/lint/ledger.hpp"

namespace uptempo::lint {

class QueueWatch;

struct Attachment {
  RecordNumber record = kOtherPairs;
  QueueWatch* queue = nullptr;
  uint64_t index = 0;   // of the packet
  bool orders = false;  // by its barrier bit the signal tells that all earlier packets are complete
};

class SignalTable {
 public:
  struct alignas(64) Entry {
    std::atomic<uint64_t> handle{0};
    std::atomic<QueueWatch*> doorbell_of{nullptr};
    std::atomic<uint32_t> marks{0};  // kUsed, kAlwaysUsed, kNotKnown
    std::atomic<uint32_t> life{0};   // the number of lives that have ended
    std::atomic<bool> busy{false};
    // Only the thread that has set `busy` changes the members below.
    std::atomic<uint32_t> attachments{0};
    uint32_t owner_count = 0;
    struct Owner {
      RecordNumber record;
      uint32_t count;
    };
    std::array<Owner, 3> owners{};              // further ones are not followed
    std::optional<hsa_signal_value_t> armed{};  // what the host has set
    Attachment last;
  };
  // The packets that a signal belongs to when a wait for it begins.
  struct Awaited {
    Entry* entry;
    uint32_t life, attachments;
    Attachment last;
    std::optional<hsa_signal_value_t> completed;  // the value once all of them are complete
  };

  explicit SignalTable(Ledger& ledger) : ledger_(ledger) {}

  // Null if the signal is neither a doorbell nor was ever added.
  Entry* find(uint64_t handle) noexcept;
  Entry* add(uint64_t handle) noexcept;  // null: the table is full

  // hsa_signal_create() has returned the signal.
  void created(uint64_t handle, hsa_signal_value_t value) noexcept;
  // Drops the attachment if `life` has ended.
  void attach(Entry& entry, uint32_t life, const Attachment& attachment) noexcept;
  static void use(Entry& entry) noexcept { mark(entry, kUsed); }
  static void use_always(Entry& entry) noexcept { mark(entry, kAlwaysUsed); }
  // The current life is not to be judged.
  static void blur(Entry& entry) noexcept { mark(entry, kNotKnown); }
  // Ends a life: the host sets the value. `before`: the signal's value, if it is known.
  void end_life(Entry& entry, std::optional<hsa_signal_value_t> before,
                std::optional<hsa_signal_value_t> armed) noexcept;
  // Whether end_life() needs the value.
  static bool needs_value(const Entry& entry) noexcept {
    return entry.attachments.load(std::memory_order_relaxed) > 1;
  }
  // The host adds to the value.
  static void change(Entry& entry, hsa_signal_value_t difference) noexcept;
  void destroy(Entry& entry, std::optional<hsa_signal_value_t> value) noexcept;

  // No value if no packet of the current life is known.
  static std::optional<Awaited> awaited(Entry& entry) noexcept;
  // True if the signal had the same packets all the time.
  static bool is_unchanged(const Awaited& awaited) noexcept {
    return awaited.entry->life.load(std::memory_order_acquire) == awaited.life &&
           awaited.entry->attachments.load(std::memory_order_acquire) == awaited.attachments;
  }

  // Doorbells whose packets have not been read yet, or fewer again.
  void add_unread(uint64_t difference) noexcept {
    unread_.fetch_add(difference, std::memory_order_seq_cst);
  }

  // value_of(uint64_t handle) -> std::optional<hsa_signal_value_t>
  template <typename ValueOf>
  void end_all_lives(ValueOf value_of) {
    for (size_t i = 0; i < kEntries; ++i)
      if (const uint64_t handle = entries_[i].handle.load(std::memory_order_acquire);
          handle != 0 && entries_[i].attachments.load(std::memory_order_relaxed) != 0)
        end_life(entries_[i], value_of(handle), std::nullopt);
  }

  uint64_t rearmed() const noexcept { return rearmed_.load(std::memory_order_relaxed); }
  uint64_t not_followed() const noexcept { return not_followed_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kEntries = 16384, kProbes = 16;
  static constexpr uint32_t kUsed = 1, kAlwaysUsed = 2, kNotKnown = 4;

  static void mark(Entry& entry, uint32_t what) noexcept {
    // A locked instruction only where it changes something.
    if ((entry.marks.load(std::memory_order_relaxed) & what) == 0)
      entry.marks.fetch_or(what, std::memory_order_relaxed);
  }
  Entry* place(uint64_t handle) noexcept;

  static size_t slot_of(uint64_t handle) noexcept {
    return static_cast<size_t>(handle * 0x9e3779b97f4a7c15u >> 50);
  }
  static_assert(kEntries == size_t{1} << (64 - 50));

  Ledger& ledger_;
  std::unique_ptr<Entry[]> entries_ = std::make_unique<Entry[]>(kEntries);
  std::atomic<uint64_t> rearmed_{0}, not_followed_{0}, unread_{0};
};

}  // namespace uptempo::lint
