// Modelled device time: what a sequence would take on a named device, from a handful of parameters that each say where they come from. An estimate,
// never a measurement; labelled "model" wherever it is shown.
//
// The model. Each queue takes its packets in order. A packet costs `launch`; ahead of that, what its acquire costs, and with a barrier bit the end of all
// earlier packets of its queue and `barrier`; a kernel then takes as long as memory needs for the bytes that its dispatch declares; behind it comes what its
// release costs, one of system scope also the time for the bytes that were written since the last one and that L2 can hold. What steps come after has
// ended and signalled. Kernels that overlap share memory as if it were twice. At the end stand one signal, its interrupt and the host's wake-up.
//
// fiji is fitted to the six figures that AMD published for a bitonic sort of 32,768 keys ("ROCm with Rapid Harmony: Optimizing HSA Dispatch"). So for
// those the model restates what it was given; everything else it says is a prediction. The others are assumptions where no source is named, good for
// which choice is cheaper, not for how long it takes.
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

struct Parameter {
  double value = 0;
  std::string_view source;  // where it was published, "fitted: ..." or "assumed: ..."
};

struct Profile {
  std::string_view name, device;
  // Microseconds
  Parameter launch;   // of a packet, from the packet processor to the first wave
  Parameter barrier;  // of a barrier bit, once all earlier packets have ended
  Parameter agent_acquire, agent_release, system_acquire, system_release;
  Parameter doorbell, signal_update, interrupt,
      host_wait;  // host_wait: from the interrupt to the thread that waits
  Parameter signal_creation, kernarg_allocation;
  Parameter pinned_copy, pageable_copy;  // of any length
  // Gigabytes (10^9) a second
  Parameter memory_rate, pinned_rate, pageable_rate;
  // Bytes
  Parameter l2_bytes;
};

// fiji, mi210, mi300x.
std::span<const Profile> profiles() noexcept;
// Throws support::UsageError that lists the names.
const Profile& find_profile(std::string_view name);

// For lists of parameters.
struct ParameterInfo {
  std::string_view name, unit;
  Parameter Profile::*member;
};
std::span<const ParameterInfo> parameter_infos() noexcept;

// What the host does around a sequence, within what is modelled.
struct HostSide {
  bool waits_after_each =
      false;  // a doorbell, a completion signal and a wait for each dispatch, instead of one of all for all of them
  uint32_t signals_created = 0, kernargs_allocated = 0;
  uint32_t copies = 0;  // before and after, of copy_bytes in all
  uint64_t copy_bytes = 0;
  bool pinned = true;  // the host memory that they copy from and to
  friend bool operator==(const HostSide&, const HostSide&) = default;
};

// `headers` has a place for each step; throws std::invalid_argument otherwise. `restated` is set for the six figures of fiji alone.
ModelTime model_time(const Profile& profile, const Sequence& sequence, const Headers& headers,
                     const HostSide& host = {});

// The published ladder: what each rung was, and its figure.
struct PublishedRung {
  std::string_view name;
  HostSide host;
  bool fences_minimal;  // else system scopes on every packet
  double us;
  // Of a sort, in the article of 120 passes.
  Headers headers(size_t kernels) const;
};
std::span<const PublishedRung> published_ladder() noexcept;
// What stands above a table of them, and above one of anything else.
inline constexpr std::string_view kRestatedHeading = "model fiji: restated, not reproduced";
inline constexpr std::string_view kPredictedHeading = "model: predicted";

}  // namespace uptempo::fence_scope
