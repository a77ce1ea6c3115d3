// KeptTimes: device times of a timeline's timed publications. It reads them from the signals before
// these are reused, and keeps them until a later timed publication takes the place. Private to
// Timeline.
//
// Separate from the publications (publication_ring.hpp), because most publications are not timed.
//
// Thread safety: the timeline's mutex protects every function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/completion/packet_time.hpp"

namespace uptempo::detail {

// Throws the Error of a request for times that the device has not stored.
[[noreturn]] void throw_no_times(const char* call, std::string asked);

class KeptTimes {
 public:
  // Appends the times of a completed publication's packets. Reads its signals.
  using Read = std::function<void(std::vector<PacketTime>& times)>;

  explicit KeptTimes(size_t places) : entries_(places) {}

  // So that expect(), and reading that many times, do not allocate.
  void reserve(size_t place, size_t times) { entries_[place].times.reserve(times); }
  // `read` reads the times of `value`, a publication in this place.
  void expect(size_t place, uint64_t value, Read read);
  void forget(size_t place) noexcept { entries_[place] = {}; }
  // Reads the times of a completed publication; once, however often it is called.
  void keep(size_t place);
  // Empty if the place holds times of another publication or none.
  std::vector<PacketTime> of(size_t place, uint64_t value);
  // Keeps the times of the publications for which `is_complete(value)` is true. No signal is read
  // afterwards.
  template <class F>
  void close(F&& is_complete);

 private:
  struct Entry {
    uint64_t value = 0;
    Read read;  // empty: nothing, or nothing more, to read
    std::vector<PacketTime> times;
  };
  static void keep(Entry& entry);

  std::vector<Entry> entries_;
};

template <class F>
void KeptTimes::close(F&& is_complete) {
  for (Entry& entry : entries_) {
    if (is_complete(entry.value)) keep(entry);
    entry.read = nullptr;
  }
}

}  // namespace uptempo::detail
