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

SignalTable::Entry* SignalTable::place(uint64_t handle) noexcept {
  for (size_t probe = 0; probe < kProbes; ++probe) {
    Entry& entry = entries_[(slot_of(handle) + probe) % kEntries];
    uint64_t there = entry.handle.load(std::memory_order_acquire);
    if (there == 0 &&
        entry.handle.compare_exchange_strong(there, handle, std::memory_order_acq_rel))
      return &entry;
    if (there == handle) return &entry;
  }
  return nullptr;
}

SignalTable::Entry* SignalTable::add(uint64_t handle) noexcept {
  Entry* const entry = place(handle);
  if (entry == nullptr) not_followed_.fetch_add(1, std::memory_order_relaxed);
  return entry;
}

void SignalTable::created(uint64_t handle, hsa_signal_value_t value) noexcept {
  Entry* const entry = place(handle);  // one that does not fit matters once it is used
  if (entry == nullptr) return;
  const Taken taken(*entry);
  entry->life.fetch_add(1, std::memory_order_release);
  if (!taken) return blur(*entry);
  // Another signal with this handle may have ended without hsa_signal_destroy().
  entry->marks.store(0, std::memory_order_relaxed);
  entry->attachments.store(0, std::memory_order_relaxed);
  entry->owner_count = 0;
  entry->armed = value;
}

void SignalTable::attach(Entry& entry, uint32_t life, const Attachment& attachment) noexcept {
  const Taken taken(entry);
  if (!taken) {
    blur(entry);
    not_followed_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (entry.life.load(std::memory_order_relaxed) != life) return;
  entry.attachments.fetch_add(1, std::memory_order_release);
  entry.last = attachment;
  for (uint32_t i = 0; i < entry.owner_count; ++i) {
    if (entry.owners[i].record != attachment.record) continue;
    ++entry.owners[i].count;
    return;
  }
  if (entry.owner_count == entry.owners.size()) {
    not_followed_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  entry.owners[entry.owner_count++] = {attachment.record, 1};
}

void SignalTable::end_life(Entry& entry, std::optional<hsa_signal_value_t> before,
                           std::optional<hsa_signal_value_t> armed) noexcept {
  const Taken taken(entry);
  entry.life.fetch_add(1, std::memory_order_release);
  if (!taken) return blur(entry);
  const uint32_t marks = entry.marks.fetch_and(kAlwaysUsed, std::memory_order_relaxed);
  const uint32_t attachments = entry.attachments.exchange(0, std::memory_order_relaxed);
  if ((marks & kNotKnown) == 0) {
    const bool is_checked = attachments <= 1 || (before && entry.armed);
    if (attachments > 1 && is_checked && *before != *entry.armed - attachments) {
      rearmed_.fetch_add(1, std::memory_order_relaxed);
    } else if (is_checked && marks == 0 && unread_.load(std::memory_order_acquire) == 0) {
      for (uint32_t i = 0; i < entry.owner_count; ++i)
        ledger_.add_shared(entry.owners[i].record, Count::unused_signals, entry.owners[i].count);
    }
  }
  entry.owner_count = 0;
  entry.armed = armed;
}

void SignalTable::change(Entry& entry, hsa_signal_value_t difference) noexcept {
  const Taken taken(entry);
  if (!taken) return blur(entry);
  if (entry.armed)
    entry.armed = static_cast<hsa_signal_value_t>(static_cast<uint64_t>(*entry.armed) +
                                                  static_cast<uint64_t>(difference));
}

void SignalTable::destroy(Entry& entry, std::optional<hsa_signal_value_t> value) noexcept {
  end_life(entry, value, std::nullopt);
  entry.marks.store(0, std::memory_order_relaxed);
}

std::optional<SignalTable::Awaited> SignalTable::awaited(Entry& entry) noexcept {
  const Taken taken(entry);
  const uint32_t attachments = entry.attachments.load(std::memory_order_relaxed);
  if (!taken || attachments == 0) return std::nullopt;
  Awaited made{.entry = &entry,
               .life = entry.life.load(std::memory_order_relaxed),
               .attachments = attachments,
               .last = entry.last,
               .completed = std::nullopt};
  const bool is_known = (entry.marks.load(std::memory_order_relaxed) & kNotKnown) == 0;
  if (is_known && entry.armed) made.completed = *entry.armed - attachments;
  return made;
}

}  // namespace uptempo::lint
