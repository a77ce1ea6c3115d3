// Which pairs of steps lack order or a fence under given headers, by the declared accesses alone and without a device: the rules of test/litmus/rules.hpp.
//
// The sequence stands where Bench puts it: ahead of it the host has written all buffers, of which the caches hold older contents; behind the closing
// barrier packets of both queues, which hand nothing over, the host reads all buffers. Kernargs were written and fenced long ago.
//
// Each buffer is cut into cells where accesses begin and end. An access is a kernel's through the vector caches, or a copy engine's. Whether the
// target can show a missing fence is judged as if one workgroup alone used a line within a dispatch: declared ranges do not say more.
//
// Thread safety: pure functions. Cost: grows with the cube of the number of steps.
#pragma once

#include <string>
#include <vector>

#include "tools/fence_scope/report/report.hpp"
#include "tools/fence_scope/sequence/sequence.hpp"

namespace uptempo::fence_scope {

struct Hazard {
  size_t earlier = Judgement::npos, later = Judgement::npos;  // steps; npos: the host, ahead or behind
  bool ordered = false;  // false: nothing orders the two, and at least one of them writes
  bool possible_on_target =
      false;  // on gfx9's caches; false: the specification allows a wrong result, these caches give none
  size_t buffer = 0;  // in which they meet
  bool later_reads = true, earlier_writes = true;
  friend bool operator==(const Hazard&, const Hazard&) = default;
};

// One for each pair and kind, in the order of the later steps. `headers` has a place for each step; throws std::invalid_argument otherwise, or if
// a step comes after itself or a later one.
std::vector<Hazard> hazards_of(const Sequence& sequence, const Headers& headers);

// The one to tell first: without order before without fence, possible on the target before harmless, early before late. Null: there is none.
const Hazard* worst_of(const std::vector<Hazard>& hazards) noexcept;

// "'pass 1.1' (2) reads what 'pass 1.0' (1) wrote to keys, and nothing releases it in between".
std::string in_words(const Hazard& hazard, const Sequence& sequence, const Headers& headers);

}  // namespace uptempo::fence_scope
