// TargetId: an LLVM target ID: a processor and the features that a code object was built for.
//
// A code object runs on an agent if the processors are equal and each feature of the code object is
// "any" or equals the agent's (LLVM AMDGPU User Guide, "Target ID" and "Code Object Target
// Identification").
//
// Thread safety: pure functions. They throw only std::bad_alloc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace uptempo {

enum class TargetFeature : uint8_t {
  any,  // code object: works with the feature on or off; agent: the feature does not exist
  off,
  on,
};

struct TargetId {
  std::string processor;  // "gfx90a"
  TargetFeature sramecc = TargetFeature::any;
  TargetFeature xnack = TargetFeature::any;
  friend bool operator==(const TargetId&, const TargetId&) = default;
};

// Parses "gfx90a:sramecc+:xnack-", alone or after a triple ("amdgcn-amd-amdhsa--", as in ISA
// names). Empty for other text.
std::optional<TargetId> parse_target_id(std::string_view text);

// Canonical spelling, features in alphabetical order.
std::string to_string(const TargetId& id);

// Empty if code for `code` runs on `agent`; otherwise the reason.
std::string why_incompatible(const TargetId& code, const TargetId& agent);

}  // namespace uptempo
