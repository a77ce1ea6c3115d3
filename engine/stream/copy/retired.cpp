#include <uptempo/stream/copy/retired.hpp>

#include <cstring>
#include <functional>
#include <utility>

#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/session.hpp>
#include <uptempo/stream/queue/event.hpp>

namespace uptempo::detail {

void copy_rows_on_host(std::byte* to, const std::byte* from, const CopyRows& rows) noexcept {
  if (rows.width_bytes == rows.to_pitch && rows.width_bytes == rows.from_pitch) {
    std::memcpy(to, from, rows.width_bytes * rows.height);
    return;
  }
  for (size_t row = 0; row < rows.height; ++row)
    std::memcpy(to + row * rows.to_pitch, from + row * rows.from_pitch, rows.width_bytes);
}

void release_all_retired() noexcept { RetiredList::of_process().carry_out(true); }
void copy_all_owed_bytes() noexcept { RetiredList::of_process().carry_out(false); }

void Retired::leave_to_session() noexcept {
  chunk = {};  // before its staging
  pin.leave_to_session();
  for (Allocation& each : memory) each.leave_to_session();
  kernargs.leave_to_session();
}

RetiredList& RetiredList::of_process() {
  // Destructors of static objects may wait for events. Without allocation, because destructors ask
  // for it.
  alignas(RetiredList) static std::byte storage[sizeof(RetiredList)];
  static RetiredList* const list = new (storage) RetiredList;
  return *list;
}

RetiredList::Entry RetiredList::make_entry() {
  Entry entry;
  {
    const std::lock_guard lock(mutex_);
    if (!unused_.empty()) entry.splice(entry.end(), unused_, unused_.begin());
  }
  if (entry.empty()) entry.emplace_back();
  entry.front().uses.expect(1);
  entry.front().memory.reserve(1);
  return entry;
}

// The functions that follow do nothing in the child of a fork: another thread of the parent may
// have held the lock, and the memory of the entries is not mapped. They are the parent's.
void RetiredList::add(Entry&& entry) noexcept {
  if (Session::is_parents()) return;
  const uint32_t owed = entry.front().owes_bytes();
  const std::lock_guard lock(mutex_);
  entries_.splice(entries_.end(), entry);
  retired_entries.fetch_add(1, std::memory_order_release);
  owed_host_copies.fetch_add(owed, std::memory_order_release);
}

void RetiredList::carry_out(bool releases_memory) noexcept {
  if (Session::is_parents()) return;
  Entry over;
  uint32_t copied = 0;
  {
    const std::lock_guard lock(mutex_);
    // Check from last to first. If a copy that executed earlier on the device precedes a complete
    // one, it is then found complete, too, and their entries are carried out in that order.
    // No std::views::reverse here: clang 15 does not compile it with the library of GCC 12.
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry)
      entry->is_due = entry->uses.are_over();
    for (auto next = entries_.begin(); next != entries_.end();) {
      const auto entry = next++;
      if (!entry->is_due) continue;
      if (entry->owes_bytes()) {
        copy_rows_on_host(entry->to, entry->from, entry->rows);
        entry->from = nullptr;
        ++copied;
      }
      if (entry->releases_memory() && !releases_memory) continue;
      entry->chunk = {};
      entry->pin = {};  // here: the same memory may be pinned again once the entry is gone
      over.splice(over.end(), entries_, entry);
      count(&CounterBlock::retired);
    }
    owed_host_copies.fetch_sub(copied, std::memory_order_release);
    retired_entries.fetch_sub(static_cast<uint32_t>(over.size()), std::memory_order_release);
  }
  if (over.empty()) return;
  for (Retired& entry : over) {  // frees what they hold, and keeps their room
    Uses uses = std::move(entry.uses);
    std::vector<Allocation> memory = std::move(entry.memory);
    uses.clear();
    memory.clear();
    entry = {.uses = std::move(uses), .memory = std::move(memory)};
  }
  const std::lock_guard lock(mutex_);
  unused_.splice(unused_.end(), over);
}

std::optional<Completion> RetiredList::user_of(const std::byte* data, size_t bytes,
                                               Use use) noexcept {
  if (retired_entries.load(std::memory_order_acquire) == 0) return {};
  const std::lock_guard lock(mutex_);
  const std::less<> before;
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    const bool so = use == Use::writes ? entry->writes : entry->pin.device_address() != nullptr;
    if (so && before(entry->used, data + bytes) && before(data, entry->used + entry->used_bytes))
      return entry->uses.each().front();
  }
  return {};
}

void RetiredList::drop(const void* owner) noexcept {
  if (Session::is_parents()) return;
  const std::lock_guard lock(mutex_);
  uint32_t owed = 0;
  const size_t dropped = std::erase_if(entries_, [&](Retired& entry) {
    if (entry.owner != owner) return false;
    owed += entry.owes_bytes();
    entry.leave_to_session();
    return true;
  });
  owed_host_copies.fetch_sub(owed, std::memory_order_release);
  retired_entries.fetch_sub(static_cast<uint32_t>(dropped), std::memory_order_release);
}

size_t RetiredList::size() noexcept {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace uptempo::detail
