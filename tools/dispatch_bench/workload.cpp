#include <kernels/basics.hpp>

#include "dispatch_bench/row.hpp"
#include "engine/dispatch/batch.hpp"

namespace uptempo::bench {

Workload::Workload(const Agent& agent)
    : gpu(agent),
      program(agent, kernels::basics()),
      tally(program.kernel<uint32_t*, uint32_t>("tally")),
      tallies(agent, kMaxDispatches) {}

bool executes_kernels(const Workload& workload) {
  Queue queue(workload.gpu);
  BatchSubmitter batch(queue);
  workload.tallies[0] = 0;
  batch.dispatch(workload.tally, Grid{Workload::items}, workload.tallies.data(), 0u);
  batch.submit().wait();
  return workload.tallies[0] == 1;
}

}  // namespace uptempo::bench
