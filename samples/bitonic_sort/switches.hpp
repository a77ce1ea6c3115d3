// The five switches that make a dispatched sort cheaper, and the ladder that adds one per rung.
//
// Baseline (no switch): one signal and one kernarg block are created inside the timed iteration,
// the host waits after each kernel, every packet acquires and releases at system scope, and host
// memory is pageable. Order and meaning: AMD, "ROCm with Rapid Harmony: Optimizing HSA Dispatch"
// (1.7x in all on a Fiji GPU).
#pragma once

#include <array>
#include <string>
#include <vector>

namespace uptempo::sort {

struct Switches {
  bool prealloc_signal = false;
  bool prealloc_kernarg = false;
  bool avoid_host_sync = false;
  bool fence = false;
  bool pinned_host = false;
  friend bool operator==(const Switches&, const Switches&) = default;
};

struct SwitchInfo {
  const char* name;  // command-line name without the dashes
  bool Switches::*member;
  const char* help;
};

// In ladder order.
inline constexpr std::array<SwitchInfo, 5> kSwitches{{
    {"prealloc-signal", &Switches::prealloc_signal, "Take the signal from a pool"},
    {"prealloc-kernarg", &Switches::prealloc_kernarg, "Take kernarg blocks from a pool"},
    {"avoid-host-sync", &Switches::avoid_host_sync, "Submit all kernels at once, wait once"},
    {"fence", &Switches::fence, "System scope at both ends, agent scope between"},
    {"pinned-host", &Switches::pinned_host, "Copy from and to pinned memory"},
}};

struct Rung {
  std::string name;
  Switches switches;
};

// "baseline", or the names of the enabled switches, joined by '+'.
std::string name_of(const Switches& switches);

// The baseline, then one more switch per rung; a rung is named after the switch that it adds.
std::vector<Rung> ladder();

}  // namespace uptempo::sort
