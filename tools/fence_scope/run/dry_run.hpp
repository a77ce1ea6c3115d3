// A run that is described and not carried out: its packets as text, and its counts. Private to
// Bench.
//
// Thread safety: pure functions.
#pragma once

#include <span>
#include <string>

#include "tools/fence_scope/report/report.hpp"
#include "tools/fence_scope/run/run_packets.hpp"
#include "tools/fence_scope/sequence/sequence.hpp"

namespace uptempo::fence_scope {

// Bench::dry_run().
std::string text_of(std::span<const Action> actions, const Sequence& sequence);

// Bench::counts(). `step_signals`: number of steps that have a signal.
DeviceCounts counts_of(std::span<const Action> actions, const Sequence& sequence,
                       const Headers& headers, size_t step_signals);

}  // namespace uptempo::fence_scope
