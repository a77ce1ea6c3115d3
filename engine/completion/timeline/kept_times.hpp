// KeptTimes: device times of a timeline's timed publications. It reads them from the signals before
// these are reused, and keeps them until a later timed publication takes the place. TimedEvents may
// want the time of a publication's last packet. Private to Timeline.
//
// Separate from the publications (publication_ring.hpp), because most publications are not timed.
//
// Thread safety: the timeline's mutex protects every function of KeptTimes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <uptempo/completion/completion.hpp>

namespace uptempo::detail {

// Throws the Error of a request for times that the device has not stored.
[[noreturn]] void throw_no_times(const char* call, std::string asked);

// The completion time of a TimedEvent (engine/stream/queue/event.hpp). The timeline of the
// publication sets it, at the latest before it reuses the publication's signal. Any thread.
class EventTime {
 public:
  // Expects the time of that publication and ignores the times of others.
  void expect(const Completion& publication) {
    const std::lock_guard lock(mutex_);
    publication_ = publication;
    ns_.reset();
  }
  void set(const Completion& publication, uint64_t ns) {
    const std::lock_guard lock(mutex_);
    if (publication_ == publication) ns_ = ns;
  }
  void set(uint64_t ns) {
    const std::lock_guard lock(mutex_);
    publication_ = {};
    ns_ = ns;
  }
  // Empty if it has not been set.
  std::optional<uint64_t> ns() const {
    const std::lock_guard lock(mutex_);
    return ns_;
  }

 private:
  mutable std::mutex mutex_;
  Completion publication_;
  std::optional<uint64_t> ns_;
};

class KeptTimes {
 public:
  // Appends the times of a completed publication's packets. Reads its signals.
  using Read = std::function<void(std::vector<PacketTime>& times)>;

  explicit KeptTimes(size_t places) : entries_(places) {}

  // So that expect(), reading that many times, and one want() do not allocate.
  void reserve(size_t place, size_t times) {
    entries_[place].times.reserve(times);
    entries_[place].wanted.reserve(1);
  }
  // `read` reads the times of `value`, a publication in this place.
  void expect(size_t place, uint64_t value, Read read);
  // True if the place holds, or will hold, the times of `value`.
  bool has(size_t place, uint64_t value) const noexcept { return entries_[place].value == value; }
  // Sets `event` to the time of a timed publication's last packet: at once if it is known,
  // otherwise when it is read. Throws std::bad_alloc and changes nothing.
  void want(size_t place, const Completion& publication, const std::shared_ptr<EventTime>& event);
  // Reads the times of a completed publication; once, however often it is called.
  void keep(size_t place) { keep(entries_[place]); }
  // Empty if the place holds times of another publication or none.
  std::vector<PacketTime> of(size_t place, uint64_t value);
  // Keeps the times of the publications for which `is_complete(value)` is true. No signal is read
  // afterwards.
  template <class F>
  void close(F&& is_complete) {
    for (Entry& entry : entries_) {
      if (is_complete(entry.value)) keep(entry);
      entry.read = nullptr;
      entry.wanted.clear();
    }
  }

 private:
  struct Entry {
    uint64_t value = 0;
    Read read;  // empty: nothing, or nothing more, to read
    std::vector<PacketTime> times;
    std::vector<std::pair<Completion, std::shared_ptr<EventTime>>> wanted;
  };
  static void keep(Entry& entry);

  std::vector<Entry> entries_;
};

}  // namespace uptempo::detail
