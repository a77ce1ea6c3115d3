// What the caches of an agent do, as far as fences depend on it.
//
// Thread safety: pure.
#pragma once

#include "engine/runtime/agent.hpp"

namespace uptempo {

// Whether AMD's memory model for gfx9 holds (LLVM AMDGPU User Guide, "Memory Model gfx6-gfx9" and "gfx90a"): one L2 for the whole agent, which does not keep
// fine-grained host memory, and first-level caches that write through. gfx940 and later generations have other rules.
bool has_gfx9_caches(const Agent& agent) noexcept;

}  // namespace uptempo
