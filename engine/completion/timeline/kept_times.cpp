#include "engine/completion/timeline/kept_times.hpp"

namespace uptempo::detail {

void KeptTimes::expect(size_t place, uint64_t value, Read read) {
  Entry& entry = entries_[place];
  entry.value = value;
  entry.read = std::move(read);
  entry.times.clear();
}

void KeptTimes::keep(size_t place) { keep(entries_[place]); }

std::vector<PacketTime> KeptTimes::of(size_t place, uint64_t value) {
  Entry& entry = entries_[place];
  if (entry.value != value) return {};
  keep(entry);
  return entry.times;
}

void KeptTimes::keep(Entry& entry) {
  if (!entry.read) return;
  entry.read(entry.times);
  entry.read = nullptr;
}

}  // namespace uptempo::detail
