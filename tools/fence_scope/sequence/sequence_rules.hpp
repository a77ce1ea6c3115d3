// Finds the pairs of steps that lack order or a fence under given headers, from declared accesses
// and without a device, by the rules of tools/litmus/rules.hpp.
//
// Surroundings, as in Bench: before the sequence the host writes all buffers while the caches hold
// older contents. After the closing barrier packets of both queues, which make nothing visible, the
// host reads all buffers. Kernargs were written and fenced earlier.
//
// Cells: each buffer is cut where accesses begin and end. A kernel accesses a cell through the
// vector caches, a copy through a copy engine. Targets: whether caches can show a missing fence is
// judged as if a single workgroup used each line within a dispatch, because declared ranges contain
// no more.
//
// Thread safety: pure functions.
// Cost: cubic in the number of steps.
#pragma once

#include <string>
#include <vector>

#include "tools/fence_scope/report/report.hpp"
#include "tools/fence_scope/sequence/sequence.hpp"

namespace uptempo::fence_scope {

struct Hazard {
  // steps; kNoStep: the host, before or after
  size_t earlier = Judgement::kNoStep, later = Judgement::kNoStep;
  bool ordered = false;  // false: nothing orders the two, and at least one of them writes
  // on the sequence's caches; false: the specification allows a wrong result, these caches give
  // none
  bool possible_on_target = false;
  size_t buffer = 0;  // the buffer in which they meet
  bool later_reads = true, earlier_writes = true;
  friend bool operator==(const Hazard&, const Hazard&) = default;
};

// One hazard for each pair and kind, in the order of the later steps. `headers` has an element for
// each step.
// Errors: std::invalid_argument for another number of headers, or if a step waits for itself or a
// later one.
std::vector<Hazard> hazards_of(const Sequence& sequence, const Headers& headers);

// The hazard to report first: missing order before a missing fence, possible on the target before
// harmless, early before late. Null if there is none.
const Hazard* worst_of(const std::vector<Hazard>& hazards) noexcept;

// "'pass 1.1' (2)"; "the host" for kNoStep.
std::string name_of(size_t step, const Sequence& sequence);
// "'pass 1.1' (2) reads what 'pass 1.0' (1) wrote to keys, and nothing releases it in between".
std::string in_words(const Hazard& hazard, const Sequence& sequence, const Headers& headers);

}  // namespace uptempo::fence_scope
