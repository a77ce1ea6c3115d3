// EventTime: the completion time of a TimedEvent. Private to engine/stream.
//
// The queue that owns the marker sets it, at the latest before it reuses the marker's signal.
//
// Thread safety: every function may be called from any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "engine/completion/timeline.hpp"

namespace uptempo::detail {

class EventTime {
 public:
  // Expects the time of that epoch and ignores the times of others.
  void expect(const Timeline& timeline, uint64_t epoch);
  void set(const Timeline& timeline, uint64_t epoch, uint64_t ns);
  void set(uint64_t ns);
  // Empty if it has not been set.
  std::optional<uint64_t> ns() const;

 private:
  mutable std::mutex mutex_;
  const Timeline* timeline_ = nullptr;
  uint64_t epoch_ = 0;
  std::optional<uint64_t> ns_;
};

}  // namespace uptempo::detail
