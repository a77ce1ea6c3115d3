// A run that is described and not carried out: its packets as text, and its counts.
//
// Thread safety: pure functions.
#pragma once

#include <span>
#include <string>

#include "tools/fence_scope/report/report.hpp"
#include "tools/fence_scope/run/run_packets.hpp"
#include "tools/fence_scope/sequence/sequence.hpp"

namespace uptempo::fence_scope {

// The 64-byte packets as text (aql/text.hpp), a block for each; and copies.
std::string text_of(std::span<const Action> actions, const Sequence& sequence);

// The same for an ungated run of the sequence on no device. All that only a device knows, addresses
// and the sizes of a kernel's segments, is 0. Signals have numbers: 1 and 2 are those of the
// queues' ends, 3 + i is that of step i. Throws SequenceError for an invalid sequence.
std::string dry_run(const Sequence& sequence, const Headers& headers);

// Bench::counts(). `step_signals`: number of steps that have a signal.
DeviceCounts counts_of(std::span<const Action> actions, const Sequence& sequence,
                       const Headers& headers, size_t step_signals);

}  // namespace uptempo::fence_scope
