#include <kernels/basics.hpp>

#include "dispatch_bench/row.hpp"

namespace uptempo::bench {

Workload::Workload(const Agent& agent)
    : gpu(agent),
      program(agent, kernels::basics()),
      tally(program.kernel<uint32_t*, uint32_t>("tally")),
      tallies(agent, kMaxDispatches) {}

}  // namespace uptempo::bench
