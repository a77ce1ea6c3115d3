#include "engine/dispatch/flight/flight_recorder.hpp"

#include <algorithm>

namespace uptempo::detail {

uint64_t FlightRecorder::claimed() const noexcept {
  const uint64_t number = total();
  if (number == 0) return 0;
  const Record& record = records_[(number - 1) % records_.size()];
  const uint64_t packets =
      static_cast<uint32_t>(record.line_and_packets.load(std::memory_order_acquire));
  return record.first.load(std::memory_order_acquire) + packets;
}

std::vector<FlightRecorder::Entry> FlightRecorder::entries() const {
  std::vector<Entry> found;
  const uint64_t end = total();
  const uint64_t size = records_.size();
  for (uint64_t number = end - std::min(end, size); number < end; ++number) {
    const Record& record = records_[number % size];
    Entry entry{.number = number + 1,
                .value = record.value.load(std::memory_order_acquire),
                .first = record.first.load(std::memory_order_acquire),
                .kernel = record.kernel.load(std::memory_order_acquire)};
    const uint64_t line_and_packets = record.line_and_packets.load(std::memory_order_acquire);
    entry.packets = static_cast<uint32_t>(line_and_packets);
    entry.site = {record.file.load(std::memory_order_acquire),
                  static_cast<uint32_t>(line_and_packets >> 32)};
    entry.headers = record.headers.load(std::memory_order_acquire);
    // The writer overwrites this record once total() is number + size.
    if (total() >= number + size) continue;
    found.push_back(entry);
  }
  return found;
}

}  // namespace uptempo::detail
