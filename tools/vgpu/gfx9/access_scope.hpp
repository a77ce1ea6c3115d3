// How far an instruction reaches: the scope that its cache bits name.
//
// Source: LLVM, AMDGPUUsage, "Memory Model GFX942" and those of the older targets.
#pragma once

#include "device/caches/caching.hpp"
#include "device/memory.hpp"
#include "gfx9/decode/decoder.hpp"

namespace uptempo::vgpu::gfx9 {

// gfx942's sc0 and sc1.
constexpr AccessScope named_scope(const Instruction& in) noexcept {
  if (in.scc_bit) return in.glc ? AccessScope::system : AccessScope::agent;
  return in.glc ? AccessScope::workgroup : AccessScope::wave;
}

// The scope of a vector load, store or atomic. Before gfx942 glc of a load makes it miss L1. No L1
// executes atomics, whose glc and sc0 ask for the old value.
constexpr AccessScope scope_of(const Instruction& in, Target target, Access access) noexcept {
  const bool named = target == Target::gfx942;
  if (access == Access::atomic)
    return named && in.scc_bit ? AccessScope::system : AccessScope::agent;
  if (named) return named_scope(in);
  return access == Access::read && in.glc ? AccessScope::agent : AccessScope::wave;
}

}  // namespace uptempo::vgpu::gfx9
