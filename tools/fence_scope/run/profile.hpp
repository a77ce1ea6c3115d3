// Modelled device time: an estimate of a sequence's time on a named device, from a few parameters
// with sources. Never a measurement; labelled "model" wherever it is shown.
//
// Model of a packet, in the order of its queue:
// - It costs `launch`. The cost of its acquire comes before that and, with a barrier bit, the end
//   of all earlier packets of its queue and `barrier`.
// - Its kernel takes the time that memory needs for the bytes that the dispatch declares.
//   Overlapping kernels do not slow each other: each gets the full memory rate.
// - The cost of its release follows. A release of system scope adds the time for the bytes written
//   since the last one, as far as L2 can hold them.
// - It begins after the steps that it waits for have ended and signalled. The end adds one signal,
//   its interrupt and the host's wake-up.
//
// Sources: fiji is fitted to the six figures that AMD published for a bitonic sort of 32,768 keys
// ("ROCm with Rapid Harmony: Optimizing HSA Dispatch"). The model restates those six figures; all
// its other results are predictions. The other profiles are assumptions where no source is named.
// They show which choice is cheaper, not how long it takes.
//
// Thread safety: pure functions; values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/fence_scope/report/report.hpp"
#include "tools/fence_scope/sequence/sequence.hpp"

namespace uptempo::fence_scope {

struct Profile {
  std::string_view name;
  // Microseconds
  double launch;   // per packet, from the packet processor to the first wave
  double barrier;  // per barrier bit, after all earlier packets have ended
  double agent_acquire, agent_release, system_acquire, system_release;
  double doorbell, signal_update, interrupt,
      host_wait;  // host_wait: from the interrupt to the waiting thread
  double signal_creation, kernarg_allocation;
  double pinned_copy, pageable_copy;  // for any length
  // Gigabytes (10^9) a second
  double memory_rate, pinned_rate, pageable_rate;
  // Bytes
  double l2_bytes;
};

// The profiles fiji, mi210 and mi300x.
std::span<const Profile> profiles() noexcept;
// Throws support::UsageError that lists the names.
const Profile& find_profile(std::string_view name);

// The host's work around a sequence, as far as it is modelled.
struct HostSide {
  // true: a doorbell, a completion signal and a wait for each dispatch; false: one of each for all
  bool waits_after_each = false;
  uint32_t signals_created = 0, kernargs_allocated = 0;
  uint32_t copies = 0;  // copies before and after, copy_bytes in all
  uint64_t copy_bytes = 0;
  bool pinned = true;  // kind of host memory that they copy from and to
  friend bool operator==(const HostSide&, const HostSide&) = default;
};

// `headers` has an element for each step. `restated` is set for the six figures of fiji only.
// Throws std::invalid_argument for another number of headers.
ModelTime model_time(const Profile& profile, const Sequence& sequence, const Headers& headers,
                     const HostSide& host = {});

// A rung of the published ladder and its figure.
struct PublishedRung {
  std::string_view name;
  HostSide host;
  bool fences_minimal;  // false: system scopes on every packet
  double us;
  // Headers of a sort with `kernels` passes; the article's has 120.
  Headers headers(size_t kernels) const;
};
std::span<const PublishedRung> published_ladder() noexcept;

}  // namespace uptempo::fence_scope
