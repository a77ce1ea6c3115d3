// LLVM target IDs: a processor and the features that a code object was built for.
//
// Rule source: LLVM AMDGPU User Guide, "Target ID" and "Code Object Target Identification". A code object runs on an agent if the processor
// is the same and each feature is either "any" in the code object or the same as the agent's.
//
// Pure functions over text; thread-safe. Nothing throws but std::bad_alloc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace uptempo {

enum class TargetFeature : uint8_t {
  any,  // code objects: works with the feature on and off. Agents: the feature does not exist
  off,
  on,
};

struct TargetId {
  std::string processor;  // "gfx90a"
  TargetFeature sramecc = TargetFeature::any;
  TargetFeature xnack = TargetFeature::any;
  friend bool operator==(const TargetId&, const TargetId&) = default;
};

// Reads "gfx90a:sramecc+:xnack-", alone or behind a triple ("amdgcn-amd-amdhsa--", as ISA names have it). Empty if it is neither.
std::optional<TargetId> parse_target_id(std::string_view text);

// The canonical spelling, features in alphabetical order.
std::string to_string(const TargetId& id);

// Empty if code for `code` runs on `agent`; else the reason why not.
std::string why_incompatible(const TargetId& code, const TargetId& agent);

}  // namespace uptempo
