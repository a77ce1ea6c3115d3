// Asks the virtual GPU's fence checker which barrier bits and fences of a plan one run did not need
// (`uptempo-vgpu --check fences,advice`, tools/vgpu/device/README.md). The checker knows the actual
// accesses, the plan the declared ones; they share no code.
//
// Thread safety: pure functions, except where noted.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "tools/fence_scope/sequence/sequence.hpp"
#include "tools/fence_scope/verdict/findings.hpp"

namespace uptempo::fence_scope {

// `planned` without the parts that the checker's report advises to remove. Ignores other lines and
// other packets. No value if the checker could not try everything, or did not list all packets that
// it means. Throws std::runtime_error with the line if a line is not a JSON object.
std::optional<Headers> narrowed(const Headers& planned, std::span<const std::string> report,
                                const Placement& placement);

// Runs the sequence once in another process and asks the checker. Throws std::runtime_error if that
// process fails, and OutOfTime after `seconds`.
// Thread safety: one thread at a time.
std::optional<Headers> advised_by_checker(const Sequence& sequence, const Headers& headers,
                                          std::optional<double> seconds = std::nullopt);

// No value unless advised_by_checker() has started this process. main() calls it before anything
// else.
std::optional<int> run_advice_process(int argc, char** argv);

}  // namespace uptempo::fence_scope
