#include "tools/fence_scope/run/step_dispatches.hpp"

#include <cstring>

namespace uptempo::fence_scope {

std::vector<aql::KernelDispatch> step_dispatches(const Sequence& sequence,
                                                 const StepKernels& kernels,
                                                 const BenchBuffers& buffers,
                                                 const RunQueues& queues, KernargBlocks& blocks) {
  std::vector<aql::KernelDispatch> dispatches;
  for (size_t i = 0; i < sequence.steps.size(); ++i) {
    const Step& step = sequence.steps[i];
    aql::KernelDispatch& dispatch = dispatches.emplace_back();
    if (step.kind == Step::Kind::copy) continue;
    const KernelInfo& kernel = kernels.of(i);
    std::byte* const block = blocks.make(kernel, step.grid, queues[step.queue].facts());
    dispatch = dispatch_of(kernel, step.grid, block);
    for (size_t a = 0; a < step.arguments.size(); ++a) {
      const Argument& argument = step.arguments[a];
      switch (argument.kind) {
        case Argument::Kind::value:
          std::memcpy(block + kernel.arguments.offset(a), argument.value.data(),
                      argument.value.size());
          break;
        case Argument::Kind::address:
          put(block, kernel, a, buffers.at(argument.buffer, argument.begin));
          break;
        case Argument::Kind::local: {
          const auto offset = static_cast<uint32_t>(align_local(dispatch.group_segment_size));
          put(block, kernel, a, offset);
          dispatch.group_segment_size = offset + argument.local_bytes;
          break;
        }
      }
    }
  }
  return dispatches;
}

}  // namespace uptempo::fence_scope
