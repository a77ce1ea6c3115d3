#include <uptempo/kernels/basics.hpp>

#include "tools/bench/dispatch/raw_queue.hpp"

namespace uptempo::bench {

Workload::Workload(const Agent& agent)
    : gpu(agent),
      program(agent, builtin_kernels::basics()),
      tally(program.kernel<uint32_t*, uint32_t>("tally")),
      tallies(agent, kMaxDispatches) {}

bool executes_kernels(const std::shared_ptr<RawQueue>& queue) {
  const Rows rows = hsa_rows(queue);
  Row& row = *rows.front();
  const Load one;
  uint32_t& tally = queue->workload().tallies[0];
  row.prepare(one);
  tally = 0;
  row.submit(one);
  row.wait();
  return tally == 1;
}

}  // namespace uptempo::bench
