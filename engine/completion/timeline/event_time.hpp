// EventTime: the completion time of a TimedEvent (engine/stream/event/timed_event.hpp). Private to
// the engine.
//
// The timeline of the publication sets it, at the latest before it reuses the publication's signal.
//
// Thread safety: every function may be called from any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "engine/completion/completion.hpp"

namespace uptempo::detail {

class EventTime {
 public:
  // Expects the time of that publication and ignores the times of others.
  void expect(const Completion& publication);
  void set(const Completion& publication, uint64_t ns);
  void set(uint64_t ns);
  // Empty if it has not been set.
  std::optional<uint64_t> ns() const;

 private:
  mutable std::mutex mutex_;
  Completion publication_;
  std::optional<uint64_t> ns_;
};

}  // namespace uptempo::detail
