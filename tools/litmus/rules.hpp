// Finds the accesses of a litmus test that lack order or a fence. Works on the test as a graph and
// is independent of the virtual GPU's fence checker, which watches a run with clocks.
//
// Order (HSA System Architecture 1.2, 2.9). Each step has a begin and an end; "before" is
// reachability:
//   packet         begins after the earlier packets of its queue have begun; with the barrier bit,
//                  after they have ended
//   barrier-AND    begins when the steps it waits for have ended; later packets of its queue begin
//                  after it has ended
//   barrier-OR     the same, but with several steps to wait for it orders none of them
//   copy           begins when the steps it waits for have ended; copies have no order among
//                  themselves
//   host           one step after another; packets and copies begin after the host steps that
//                  precede them
//
// Fences (2.9.1 and 3.4) act for the whole agent: an acquire at the begin of its packet, a release
// at the end. A write that is before another access of the same cell reaches it if
//   dispatch -> dispatch        a release of agent scope follows the write, and an acquire of agent
//                               scope follows the release and precedes the reader
//   dispatch -> host or engine  a release of system scope is between them
//   host or engine -> dispatch  an acquire of system scope is between them
//   host or engine -> the same  always
// A dispatch's write before a write by host or engine also needs the release. Otherwise a cache may
// write the first value back over the second.
//
// Caches of gfx9 (LLVM AMDGPUUsage, memory models gfx6-gfx9 and gfx90a): a read is stale only if a
// cache holds the line from an earlier use that no acquire has invalidated since. L1 caches any
// memory. L2 caches device-local and coarse-grained memory only, and keeps writes until a release
// of system scope.
//
// Caches of gfx942 (LLVM AMDGPUUsage, memory model gfx942; Linux gmc_v9_0.c, GC 9.4.3): each XCD
// has an L2, which caches device-local memory only and keeps writes until a release of agent scope
// or wider. Until then no other XCD, host or engine sees them, and writes of several XCDs to one
// cell reach memory in any order. Its clean copies are never stale. Each dispatch is taken to run
// on other XCDs than the dispatches before it, except that two passes of the sort in one queue run
// where their workgroups are dealt.
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

// The caches for which `possible_on_target` is found.
enum class CacheRules : uint8_t { gfx9, gfx942 };
// Nothing: the rules do not know the target ("gfx1100").
std::optional<CacheRules> cache_rules_of(std::string_view target) noexcept;

// All hazards; empty for a correct program. Under gfx942 also writes of two dispatches without a
// release between them, which one L2 keeps in order.
std::vector<Hazard> hazards_of(const Test& test, CacheRules rules = CacheRules::gfx9);

enum class Verdict : uint8_t {
  correct,   // no hazards: only the sequential outcome is allowed
  harmless,  // the specification allows other outcomes, the target's caches produce none
  possible   // other outcomes are possible on the target, too
};
const char* name_of(Verdict verdict) noexcept;
Verdict verdict_of(const std::vector<Hazard>& hazards) noexcept;

}  // namespace uptempo::litmus
