#include "engine/stream/copy/host_duties.hpp"

#include <cstring>
#include <functional>
#include <utility>

#include "engine/runtime/counters.hpp"
#include "engine/stream/event/detail/pending_host_duties.hpp"

namespace uptempo::detail {

void copy_rows_on_host(std::byte* to, const std::byte* from, const CopyRows& rows) noexcept {
  if (rows.width_bytes == rows.to_pitch && rows.width_bytes == rows.from_pitch) {
    std::memcpy(to, from, rows.width_bytes * rows.height);
    return;
  }
  for (size_t row = 0; row < rows.height; ++row)
    std::memcpy(to + row * rows.to_pitch, from + row * rows.from_pitch, rows.width_bytes);
}

void finish_pending_host_duties() noexcept { HostDuties::of_process().finish(); }
void copy_all_owed_bytes() noexcept { HostDuties::of_process().copy_owed_bytes(); }

HostDuties& HostDuties::of_process() {
  // Destructors of static objects may wait for events. Without allocation, because destructors ask
  // for it.
  alignas(HostDuties) static std::byte storage[sizeof(HostDuties)];
  static HostDuties* const duties = new (storage) HostDuties;
  return *duties;
}

HostDuties::Place HostDuties::make_place() {
  Place place;
  {
    const std::lock_guard lock(mutex_);
    if (!unused_.empty()) place.splice(place.end(), unused_, unused_.begin());
  }
  if (place.empty()) place.emplace_back();
  return place;
}

void HostDuties::add(Place&& place, HostDuty&& duty) noexcept {
  place.front() = std::move(duty);
  const uint32_t owed = place.front().owes_bytes();
  const std::lock_guard lock(mutex_);
  duties_.splice(duties_.end(), place);
  pending_host_duties.fetch_add(1, std::memory_order_release);
  owed_host_copies.fetch_add(owed, std::memory_order_release);
}

void HostDuties::finish() noexcept {
  const std::lock_guard lock(mutex_);
  run(true);
}

void HostDuties::copy_owed_bytes() noexcept {
  const std::lock_guard lock(mutex_);
  run(false);
}

void HostDuties::run(bool releases_memory) noexcept {
  // Check from last to first. If a copy that executed earlier on the device precedes a complete
  // one, it is then found complete, too, and their duties run in that order.
  // No std::views::reverse here: clang 15 does not compile it with the library of GCC 12.
  for (auto duty = duties_.rbegin(); duty != duties_.rend(); ++duty)
    duty->is_due = duty->after.is_done();
  uint32_t copied = 0, released = 0;
  for (auto next = duties_.begin(); next != duties_.end();) {
    const auto place = next++;
    HostDuty& duty = *place;
    if (!duty.is_due) continue;
    if (duty.owes_bytes()) {
      copy_rows_on_host(duty.to, duty.from, duty.rows);
      duty.from = nullptr;
      ++copied;
    }
    if (duty.releases_memory() && !releases_memory) continue;
    duty = {};
    unused_.splice(unused_.end(), duties_, place);
    ++released;
    count(&CounterBlock::host_duties);
  }
  owed_host_copies.fetch_sub(copied, std::memory_order_release);
  pending_host_duties.fetch_sub(released, std::memory_order_release);
}

std::optional<TimelinePoint> HostDuties::user_of(const std::byte* data, size_t bytes,
                                                 Uses uses) noexcept {
  if (pending_host_duties.load(std::memory_order_acquire) == 0) return {};
  const std::lock_guard lock(mutex_);
  const std::less<> before;
  for (auto duty = duties_.rbegin(); duty != duties_.rend(); ++duty) {
    const bool so = uses == Uses::writes ? duty->writes : duty->pin.device_address() != nullptr;
    if (so && before(duty->used, data + bytes) && before(data, duty->used + duty->used_bytes))
      return duty->after;
  }
  return {};
}

void HostDuties::drop(const void* owner) noexcept {
  const std::lock_guard lock(mutex_);
  uint32_t owed = 0;
  const size_t dropped = std::erase_if(duties_, [&](HostDuty& duty) {
    if (duty.owner != owner) return false;
    owed += duty.owes_bytes();
    duty.pin.leave_to_session();
    return true;
  });
  owed_host_copies.fetch_sub(owed, std::memory_order_release);
  pending_host_duties.fetch_sub(static_cast<uint32_t>(dropped), std::memory_order_release);
}

size_t HostDuties::pending() noexcept {
  const std::lock_guard lock(mutex_);
  return duties_.size();
}

}  // namespace uptempo::detail
