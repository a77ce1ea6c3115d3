// What the host still has to do when copies of streams are complete on the device: bytes out of staging memory into pageable memory, and what a copy has used given back.
// One list for the process, because an event says nothing of the streams that it follows from. Private to engine/stream and its tests.
//
// Whoever learns that something is complete calls finish_host_duties() before it says so; where nothing is owed that is one load. Each duty is carried out once, in the order in
// which they were added as far as the device's order makes that visible, and before any call of finish() returns that could know of its completion.
//
// Thread safety: every function from any thread; a lock is held while the host copies. Lifetime: the list is never destroyed; an owner drops what is
// left before the memory that its duties name goes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/completion/timeline.hpp"
#include "engine/memory/host_pin.hpp"
#include "engine/stream/copy/copy_ends.hpp"
#include "engine/stream/copy/staging.hpp"

namespace uptempo::detail {

struct HostDuty {
  TimelinePoint after;
  // Rows to be copied by the host; none where something is only to be given back.
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  CopyRows rows{};
  // The caller's memory that is pinned, or is written by this duty or by the device.
  const std::byte* used = nullptr;
  size_t used_bytes = 0;
  bool writes = false;
  // Given back afterwards.
  Staging::Chunk chunk{};
  HostPin pin{};
  std::shared_ptr<Staging> staging{};  // of this copy alone
  const void* owner = nullptr;
};

// Copies row by row, and all at once where rows follow each other.
void copy_rows_on_host(std::byte* to, const std::byte* from, const CopyRows& rows) noexcept;

class HostDuties {
 public:
  static HostDuties& of_process();
  HostDuties() = default;
  HostDuties(const HostDuties&) = delete;
  HostDuties& operator=(const HostDuties&) = delete;

  void add(HostDuty duty);
  // Carries out what is complete.
  void finish() noexcept;
  enum class Uses : uint8_t { writes, pins };
  // When the last duty that uses a part of the range so is due. Nothing where none does.
  std::optional<TimelinePoint> user_of(const std::byte* data, size_t bytes, Uses uses) noexcept;
  // Forgets what is not complete.
  void drop(const void* owner) noexcept;
  size_t owed() noexcept;

 private:
  void finish_locked() noexcept;

  std::mutex mutex_;
  std::vector<HostDuty> duties_;  // in the order of the calls
  std::vector<bool> ready_;
};

}  // namespace uptempo::detail
