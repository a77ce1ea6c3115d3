// The five things that make a dispatched sort cheaper, each on its own, and the ladder that adds them up.
//
// Without any of them (the baseline) one signal and one kernarg block are made inside the timed iteration, the host waits after each
// kernel, every packet acquires and releases at system scope, and host memory is pageable.
// Order and meaning: AMD, "ROCm with Rapid Harmony: Optimizing HSA Dispatch" (1.7x in all on a Fiji GPU).
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
  const char* name;  // as on the command line, without the dashes
  bool Switches::*member;
  const char* help;
};

// In the ladder's order.
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

// "baseline", or the names of the switches that are on, joined by '+'.
std::string name_of(const Switches& switches);

// Baseline, then one switch more on each rung; a rung is named after the switch that it adds.
std::vector<Rung> ladder();

}  // namespace uptempo::sort
