// Asks the virtual GPU's fence checker which barrier bits and fences of a plan one run did not need
// (`uptempo-vgpu --check fences,advice`, tools/vgpu/device/README.md). The checker knows the actual
// accesses, the plan the declared ones; they share no code.
//
// Thread safety: pure functions, except where noted.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/fence_scope/sequence/case_message.hpp"
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

// The task of that process (run_task()): prints where the packets of one run were published. The
// checker writes its advice when the process ends.
inline constexpr const char* kAdviceTask = "--opinion-case";
nlohmann::ordered_json advise(const Cases& cases, const std::vector<std::string>& arguments);

}  // namespace uptempo::fence_scope
