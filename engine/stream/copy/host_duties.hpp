// HostDuties: host work that remains when stream copies are complete on the device. It copies bytes
// from staging to pageable memory and releases the copy's resources. Private to engine/stream and
// its tests. One list serves the process, because an event does not name the streams that it
// follows.
//
// Every function that observes completion calls finish_host_duties() before it reports it; if no
// duty is pending, this costs one load. Each duty runs once. Duties run in the order of add(), as
// far as the device's order makes that visible, and before any finish() returns that could observe
// their completion. Event::ready() calls copy_owed_bytes() instead, which leaves what needs a call
// of HSA to a later finish().
//
// Thread safety: every function may be called from any thread. A lock is held while the host
// copies.
// Lifetime: the list is never destroyed. An owner drops its remaining duties before it frees the
// memory they use.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/completion/timeline.hpp"
#include "engine/memory/host_pin.hpp"
#include "engine/stream/copy/copy_ends.hpp"
#include "engine/stream/copy/staging.hpp"

namespace uptempo::detail {

struct HostDuty {
  TimelinePoint after;
  // Rows that the host copies; none if resources are only released.
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  CopyRows rows{};
  // The caller's memory that is pinned, or that this duty or the device writes.
  const std::byte* used = nullptr;
  size_t used_bytes = 0;
  bool writes = false;
  // Released afterwards.
  Staging::Chunk chunk{};
  HostPin pin{};
  std::shared_ptr<Staging> staging{};  // used by this copy only
  const void* owner = nullptr;
  bool is_due = false;  // the list's own

  bool owes_bytes() const noexcept { return from != nullptr; }
  // Its release calls HSA: to unpin, or to free memory.
  bool releases_memory() const noexcept { return pin.device_address() != nullptr || staging; }
};

// Copies row by row, or all rows at once if they are contiguous.
void copy_rows_on_host(std::byte* to, const std::byte* from, const CopyRows& rows) noexcept;

class HostDuties {
 public:
  static HostDuties& of_process();
  HostDuties() = default;
  HostDuties(const HostDuties&) = delete;
  HostDuties& operator=(const HostDuties&) = delete;

  // A list of one, made before a copy begins: nothing may fail after that. Throws std::bad_alloc.
  // Allocates if more duties are pending than ever before.
  using Place = std::list<HostDuty>;
  Place make_place();
  void add(Place&& place, HostDuty&& duty) noexcept;
  // Runs the duties whose copies are complete.
  void finish() noexcept;
  // Copies their bytes, and releases what needs no call of HSA.
  void copy_owed_bytes() noexcept;
  enum class Uses : uint8_t { writes, pins };
  // Returns the point at which the last duty that uses any part of the range in this way becomes
  // due. Empty if there is none.
  std::optional<TimelinePoint> user_of(const std::byte* data, size_t bytes, Uses uses) noexcept;
  // Drops the owner's duties that have not run.
  void drop(const void* owner) noexcept;
  size_t pending() noexcept;

 private:
  // Requires mutex_.
  void run(bool releases_memory) noexcept;

  std::mutex mutex_;
  std::list<HostDuty> duties_;  // in call order
  std::list<HostDuty> unused_;  // places for later ones
};

}  // namespace uptempo::detail
