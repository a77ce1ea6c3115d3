// Which accesses of a litmus test lack order or a fence: the rules once more, over the test as data and as a graph, independent of the
// virtual GPU's fence checker, which watches a run with clocks.
//
// Each step has two moments, its begin and its end. Order (HSA System Architecture 1.2, 2.9; "before" is reachability):
//   packet         begins after the earlier packets of its queue have begun; with the barrier bit, after they have ended
//   barrier-AND    begins when the steps it waits for have ended; later packets of its queue begin after it has ended
//   barrier-OR     the same, but with several steps to wait for it orders none of them
//   copy           begins when the steps that it waits for have ended; copies have no order among themselves
//   host           one step after another; packets and copies begin after the host steps that stand ahead of them
// Fences act for the whole agent: an acquire at the begin of its packet, a release at the end. A write that is before another access of the same
// cell reaches it if (2.9.1 and 3.4)
//   dispatch -> dispatch        a release of agent scope lies after the write, and an acquire of agent scope between that and the reader
//   dispatch -> host or engine  a release of system scope lies between
//   host or engine -> dispatch  an acquire of system scope lies between
//   host or engine -> the same  always
// and dispatch -> write by host or engine needs the release as well, or the first write may be written back over the second.
//
// What gfx9 can do of that (LLVM AMDGPUUsage, memory models gfx6-gfx9 and gfx90a): a read is stale only if a cache holds the line from an earlier
// use that no acquire has invalidated since: L1 of any memory; L2 of device-local and coarse-grained memory alone, which also keeps writes
// until a release of system scope.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tools/litmus/litmus.hpp"

namespace uptempo::litmus {

struct Hazard {
  enum class Conflict : uint8_t { read_after_write, write_after_read, write_after_write };

  StepId earlier, later;  // in the order of the test
  Conflict conflict;
  bool ordered;  // false: a race
  bool possible_on_target;

  bool operator==(const Hazard&) const = default;
};

// All of them; none for a correct program.
std::vector<Hazard> hazards_of(const Test& test);

enum class Verdict : uint8_t {
  correct,   // no hazard: the sequential outcome alone
  harmless,  // the specification allows others, the caches of the target give none
  possible   // others are possible on the target, too
};
const char* name_of(Verdict verdict) noexcept;
Verdict verdict_of(const std::vector<Hazard>& hazards) noexcept;

// Whether the second half of the rules is about this target ("gfx90a").
bool is_known_target(std::string_view target) noexcept;

}  // namespace uptempo::litmus
