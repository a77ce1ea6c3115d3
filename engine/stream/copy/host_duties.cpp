#include "engine/stream/copy/host_duties.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

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

HostDuties& HostDuties::of_process() {
  // Destructors of static objects may wait for events.
  static HostDuties* const duties = new HostDuties;
  return *duties;
}

void HostDuties::add(HostDuty duty) {
  const std::lock_guard lock(mutex_);
  duties_.push_back(std::move(duty));
  pending_host_duties.fetch_add(1, std::memory_order_release);
}

void HostDuties::finish() noexcept {
  const std::lock_guard lock(mutex_);
  finish_locked();
}

void HostDuties::finish_locked() noexcept {
  // Check from last to first. If a copy that executed earlier on the device precedes a complete
  // one, it is then found complete, too, and their duties run in that order.
  ready_.assign(duties_.size(), false);
  bool any = false;
  for (size_t i = duties_.size(); i-- > 0;) any |= (ready_[i] = duties_[i].after.is_done());
  if (!any) return;
  size_t kept = 0;
  for (size_t i = 0; i < duties_.size(); ++i) {
    HostDuty& duty = duties_[i];
    if (ready_[i]) {
      if (duty.from != nullptr) copy_rows_on_host(duty.to, duty.from, duty.rows);
      count(&CounterBlock::host_duties);
      duty.chunk = {};
      duty.pin = {};
      duty.staging.reset();
    } else {
      if (kept != i) duties_[kept] = std::move(duty);
      ++kept;
    }
  }
  pending_host_duties.fetch_sub(static_cast<uint32_t>(duties_.size() - kept),
                                std::memory_order_release);
  duties_.erase(duties_.begin() + static_cast<ptrdiff_t>(kept), duties_.end());
}

std::optional<TimelinePoint> HostDuties::user_of(const std::byte* data, size_t bytes,
                                                 Uses uses) noexcept {
  if (pending_host_duties.load(std::memory_order_acquire) == 0) return {};
  const std::lock_guard lock(mutex_);
  const std::less<> before;
  for (size_t i = duties_.size(); i-- > 0;) {
    const HostDuty& duty = duties_[i];
    const bool so = uses == Uses::writes ? duty.writes : duty.pin.device_address() != nullptr;
    if (so && before(duty.used, data + bytes) && before(data, duty.used + duty.used_bytes))
      return duty.after;
  }
  return {};
}

void HostDuties::drop(const void* owner) noexcept {
  const std::lock_guard lock(mutex_);
  const size_t dropped = std::erase_if(duties_, [&](HostDuty& duty) {
    if (duty.owner != owner) return false;
    duty.pin.leave_to_session();
    return true;
  });
  pending_host_duties.fetch_sub(static_cast<uint32_t>(dropped), std::memory_order_release);
}

size_t HostDuties::pending() noexcept {
  const std::lock_guard lock(mutex_);
  return duties_.size();
}

}  // namespace uptempo::detail
