// What is known of signals: the doorbells of queues, and completion signals of packets.
//
// A use of a signal is a call that reads or waits for it: a load, a wait, an exchange, a handler, a
// dependency of a packet or copy, a query of its times. A life of a completion signal begins where
// it is attached to a packet and ends where the host stores to it or destroys it. If there was no
// use in a life, no call reads the signals of the packets in it.
//
// A program may read and re-arm a signal in its memory instead. A signal that was attached more
// than once in a life and then holds another value than that many completions leave was re-armed
// so. `rearmed()` counts them; unused signals of such a program are not known.
//
// The table has a fixed size. A signal that does not fit is not followed; `not_followed()` counts.
//
// Thread safety: any thread; no function waits or allocates. Two threads that attach the same
// signal at the same time: one of the two attachments is not followed.
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
  struct Entry {
    std::atomic<uint64_t> handle{0};
    std::atomic<QueueWatch*> doorbell_of{nullptr};
    std::atomic<uint32_t> used{0};  // kUsed, kAlwaysUsed
    std::atomic<bool> busy{false};
    // The members below belong to the thread that has set `busy`.
    std::atomic<uint32_t> attachments{0};  // others may look at it
    uint32_t owner_count = 0;
    struct Owner {
      RecordNumber record;
      uint32_t count;
    };
    std::array<Owner, 3> owners{};  // further ones are not followed
    hsa_signal_value_t first_value = 0;
    Attachment last;
  };

  explicit SignalTable(Ledger& ledger) : ledger_(ledger) {}

  // Null if the signal is neither a doorbell nor was ever attached or given a use by `add`.
  Entry* find(uint64_t handle) noexcept;
  Entry* add(uint64_t handle) noexcept;  // null: the table is full

  void attach(uint64_t handle, const Attachment& attachment, hsa_signal_value_t value) noexcept;
  static void use(Entry& entry) noexcept { entry.used.fetch_or(kUsed, std::memory_order_relaxed); }
  static void use_always(Entry& entry) noexcept {
    entry.used.fetch_or(kAlwaysUsed, std::memory_order_relaxed);
  }
  // Ends a life. `value`: the signal's value before, if it is known.
  void end_life(Entry& entry, std::optional<hsa_signal_value_t> value) noexcept;
  void destroy(Entry& entry, std::optional<hsa_signal_value_t> value) noexcept;
  // The last attachment in the current life.
  static std::optional<Attachment> last_attachment(Entry& entry, uint32_t& attachments) noexcept;

  // value_of(uint64_t handle) -> std::optional<hsa_signal_value_t>
  template <typename ValueOf>
  void end_all_lives(ValueOf value_of) {
    for (size_t i = 0; i < kEntries; ++i)
      if (const uint64_t handle = entries_[i].handle.load(std::memory_order_acquire);
          handle != 0 && entries_[i].attachments.load(std::memory_order_relaxed) != 0)
        end_life(entries_[i], value_of(handle));
  }

  uint64_t rearmed() const noexcept { return rearmed_.load(std::memory_order_relaxed); }
  uint64_t not_followed() const noexcept { return not_followed_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kEntries = 16384, kProbes = 16;
  static constexpr uint32_t kUsed = 1, kAlwaysUsed = 2;

  static size_t slot_of(uint64_t handle) noexcept {
    return static_cast<size_t>(handle * 0x9e3779b97f4a7c15u >> 50);
  }
  static_assert(kEntries == size_t{1} << (64 - 50));

  Ledger& ledger_;
  std::unique_ptr<Entry[]> entries_ = std::make_unique<Entry[]>(kEntries);
  std::atomic<uint64_t> rearmed_{0}, not_followed_{0};
};

}  // namespace uptempo::lint
