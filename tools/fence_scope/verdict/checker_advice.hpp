// What the virtual GPU's fence checker says to a plan: which barrier bits and fences one run of it would have been right without (`uptempo-vgpu --check fences,advice`,
// tools/vgpu/device/README.md). It knows the accesses that were made, the plan those that are declared; the two share no code.
//
// Thread safety: as said at each.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "tools/fence_scope/verdict/findings.hpp"
#include "tools/fence_scope/sequence/sequence.hpp"

namespace uptempo::fence_scope {

// `planned` without what is advised to give up, by the lines of the checker's report; other lines and other packets mean nothing. Nothing where the checker could not try everything, or
// did not list all of ours that it means. Throws std::runtime_error with the line for one that is no JSON object. Pure.
std::optional<Headers> narrowed(const Headers& planned, std::span<const std::string> report,
                                const Placement& placement);

// Carries the sequence out once in a process of its own, and asks. Throws std::runtime_error if that process fails. From one thread at a time.
std::optional<Headers> ask_checker(const Sequence& sequence, const Headers& headers);

// Null: this process is none of those. main() asks ahead of everything else.
std::optional<int> run_advice_process(int argc, char** argv);

}  // namespace uptempo::fence_scope
