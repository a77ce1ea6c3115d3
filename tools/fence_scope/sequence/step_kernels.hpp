// Finds the kernels of a sequence on a device, and checks arguments and grids against the code
// object's metadata.
//
// Thread safety: immutable.
// Lifetime: within that of the Runtime.
#pragma once

#include <memory>
#include <vector>

#include <uptempo/program/program.hpp>
#include <uptempo/runtime/agent.hpp>
#include "tools/fence_scope/sequence/sequence.hpp"

namespace uptempo::fence_scope {

class StepKernels {
 public:
  // Errors: SequenceError naming the step and the argument; Error for a code object that cannot be
  // loaded.
  StepKernels(const Agent& gpu, const Sequence& sequence);

  const KernelInfo& of(size_t step) const noexcept { return *kernels_[step]; }

 private:
  std::vector<Program> programs_;
  std::vector<std::shared_ptr<const KernelInfo>> kernels_;  // [step]
};

}  // namespace uptempo::fence_scope
