// What the lint counts for each pair of packets, and the findings among it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace uptempo::lint {

enum class Count : uint8_t {
  // Denominators.
  packets,
  dispatches,  // made from `packets` for the report
  system_acquires,
  system_releases,
  barrier_bits,
  signals,
  doorbells,
  // Findings, in the order of Finding.
  wide_acquires,
  wide_releases,
  idle_barriers,
  unused_signals,
  host_waits,
  lone_doorbells,
  unaligned_kernargs,
  // Sums.
  waited_ns,
};
constexpr size_t kCountCount = static_cast<size_t>(Count::waited_ns) + 1;

enum class Finding : uint8_t {
  wide_acquire,
  wide_release,
  idle_barrier,
  unused_signal,
  host_wait,
  lone_doorbell,
  unaligned_kernarg,
};
constexpr size_t kFindingCount = static_cast<size_t>(Finding::unaligned_kernarg) + 1;

struct FindingText {
  Finding finding;
  Count count;
  Count of;
  std::string_view name;   // in JSON
  std::string_view cost;   // option cost.<this>; empty: none, the cost is measured
  std::string_view title;  // in the text report
};
constexpr std::array<FindingText, kFindingCount> kFindings{{
    {Finding::wide_acquire, Count::wide_acquires, Count::system_acquires, "wide_acquire", "acquire",
     "system acquires, agent scope is enough"},
    {Finding::wide_release, Count::wide_releases, Count::system_releases, "wide_release", "release",
     "system releases, agent scope is enough"},
    {Finding::idle_barrier, Count::idle_barriers, Count::barrier_bits, "idle_barrier", "barrier",
     "barrier bits without effect"},
    {Finding::unused_signal, Count::unused_signals, Count::signals, "unused_signal", "signal",
     "completion signals that no call reads"},
    {Finding::host_wait, Count::host_waits, Count::packets, "host_wait", "",
     "packets published after a host wait"},
    {Finding::lone_doorbell, Count::lone_doorbells, Count::doorbells, "lone_doorbell", "doorbell",
     "doorbells for one packet each"},
    {Finding::unaligned_kernarg, Count::unaligned_kernargs, Count::dispatches, "unaligned_kernarg",
     "kernarg", "kernargs not aligned to 64 bytes"},
}};

}  // namespace uptempo::lint
