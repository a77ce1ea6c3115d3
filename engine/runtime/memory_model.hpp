// Properties of an agent's caches that fences depend on.
//
// Thread safety: pure functions.
#pragma once

#include "engine/runtime/agent.hpp"

namespace uptempo {

// True if AMD's memory model for gfx9 applies (LLVM AMDGPU User Guide, "Memory Model gfx6-gfx9" and
// "gfx90a"): one L2 for the whole agent, which does not cache fine-grained host memory, and
// write-through first-level caches. gfx940 and later generations have other rules.
bool has_gfx9_caches(const Agent& agent) noexcept;

}  // namespace uptempo
