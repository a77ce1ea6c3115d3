#include "tools/lint/signal_table.hpp"

namespace uptempo::lint {
namespace {

// Takes an entry's members if no other thread has them.
class Taken {
 public:
  explicit Taken(SignalTable::Entry& entry)
      : entry_(entry), got_(!entry.busy.exchange(true, std::memory_order_acquire)) {}
  ~Taken() {
    if (got_) entry_.busy.store(false, std::memory_order_release);
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  explicit operator bool() const { return got_; }

 private:
  SignalTable::Entry& entry_;
  const bool got_;
};

}  // namespace

SignalTable::Entry* SignalTable::find(uint64_t handle) noexcept {
  for (size_t probe = 0; probe < kProbes; ++probe) {
    Entry& entry = entries_[(slot_of(handle) + probe) % kEntries];
    const uint64_t there = entry.handle.load(std::memory_order_acquire);
    if (there == handle) return &entry;
    if (there == 0) return nullptr;
  }
  return nullptr;
}

SignalTable::Entry* SignalTable::add(uint64_t handle) noexcept {
  for (size_t probe = 0; probe < kProbes; ++probe) {
    Entry& entry = entries_[(slot_of(handle) + probe) % kEntries];
    uint64_t there = entry.handle.load(std::memory_order_acquire);
    if (there == 0 &&
        entry.handle.compare_exchange_strong(there, handle, std::memory_order_acq_rel))
      return &entry;
    if (there == handle) return &entry;
  }
  not_followed_.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

void SignalTable::attach(uint64_t handle, const Attachment& attachment,
                         hsa_signal_value_t value) noexcept {
  Entry* const entry = add(handle);
  if (entry == nullptr) return;
  const Taken taken(*entry);
  if (!taken) {
    not_followed_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (entry->attachments.fetch_add(1, std::memory_order_relaxed) == 0) entry->first_value = value;
  entry->last = attachment;
  for (uint32_t i = 0; i < entry->owner_count; ++i) {
    if (entry->owners[i].record != attachment.record) continue;
    ++entry->owners[i].count;
    return;
  }
  if (entry->owner_count == entry->owners.size()) {
    not_followed_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  entry->owners[entry->owner_count++] = {attachment.record, 1};
}

void SignalTable::end_life(Entry& entry, std::optional<hsa_signal_value_t> value) noexcept {
  const Taken taken(entry);
  if (!taken) return;
  const uint32_t used = entry.used.fetch_and(~kUsed, std::memory_order_relaxed);
  const uint32_t attachments = entry.attachments.exchange(0, std::memory_order_relaxed);
  if (attachments > 1 && (!value || *value != entry.first_value - attachments)) {
    if (value) rearmed_.fetch_add(1, std::memory_order_relaxed);
  } else if (used == 0) {
    for (uint32_t i = 0; i < entry.owner_count; ++i)
      ledger_.add_shared(entry.owners[i].record, Count::unused_signals, entry.owners[i].count);
  }
  entry.owner_count = 0;
}

void SignalTable::destroy(Entry& entry, std::optional<hsa_signal_value_t> value) noexcept {
  end_life(entry, value);
  entry.used.store(0, std::memory_order_relaxed);
}

std::optional<Attachment> SignalTable::last_attachment(Entry& entry,
                                                       uint32_t& attachments) noexcept {
  const Taken taken(entry);
  attachments = entry.attachments.load(std::memory_order_relaxed);
  if (!taken || attachments == 0) return std::nullopt;
  return entry.last;
}

}  // namespace uptempo::lint
