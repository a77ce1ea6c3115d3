// The dispatches of a sequence's steps, ready for any headers: geometry, and kernargs that are
// written once. Private to Bench.
#pragma once

#include <vector>

#include <uptempo/aql/packet.hpp>
#include "tools/fence_scope/run/bench_buffers.hpp"
#include "tools/fence_scope/run/kernarg_blocks.hpp"
#include "tools/fence_scope/run/run_queues.hpp"
#include "tools/fence_scope/sequence/sequence.hpp"
#include "tools/fence_scope/sequence/step_kernels.hpp"

namespace uptempo::fence_scope {

// One element per step; those of copies are unused. Throws Error.
std::vector<aql::KernelDispatch> step_dispatches(const Sequence& sequence,
                                                 const StepKernels& kernels,
                                                 const BenchBuffers& buffers,
                                                 const RunQueues& queues, KernargBlocks& blocks);

}  // namespace uptempo::fence_scope
