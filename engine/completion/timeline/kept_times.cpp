#include <uptempo/completion/timeline/kept_times.hpp>

#include <uptempo/runtime/error.hpp>

namespace uptempo::detail {

void throw_no_times(const char* call, std::string asked) {
  throw Error({.code = ErrorCode::unavailable,
               .status = HSA_STATUS_ERROR,
               .call = call,
               .asked = std::move(asked),
               .found = "the device has stored none, or its signal has been used again",
               .remedy =
                   "use a Queue or Stream of your own: its times are enabled before its first "
                   "packet. A processor may ignore it for a borrowed HSA queue that it has "
                   "mapped; create that with times enabled "
                   "(hsa_amd_profiling_set_profiler_enabled)"});
}

void KeptTimes::expect(size_t place, uint64_t value, Read read) {
  Entry& entry = entries_[place];
  entry.value = value;
  entry.read = std::move(read);
  entry.times.clear();
  entry.wanted.clear();
}

void KeptTimes::want(size_t place, const Completion& publication,
                     const std::shared_ptr<EventTime>& event) {
  Entry& entry = entries_[place];
  if (entry.read) entry.wanted.emplace_back(publication, event);
  event->expect(publication);
  if (!entry.read && !entry.times.empty()) event->set(publication, entry.times.back().end_ns);
}

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
  for (const auto& [publication, event] : entry.wanted)
    event->set(publication, entry.times.back().end_ns);
  entry.wanted.clear();
}

}  // namespace uptempo::detail
