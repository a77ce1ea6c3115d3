#include <kernels/basics.hpp>

#include "dispatch_bench/row.hpp"
#include "engine/dispatch/batch.hpp"
#include "engine/runtime/signal_budget.hpp"

namespace uptempo::bench {

Workload::Workload(const Agent& agent)
    : gpu(agent),
      program(agent, kernels::basics()),
      tally(program.kernel<uint32_t*, uint32_t>("tally")),
      tallies(agent, kMaxDispatches) {}

bool executes_kernels(const Workload& workload) {
  // Peers may have used up the driver's events by now.
  const SignalBudget before = signal_budget();
  set_signal_budget({.interrupts = before.interrupts, .beyond = SignalBudget::Beyond::event_less});
  Queue queue(workload.gpu, {.publications = 1});
  set_signal_budget(before);
  BatchSubmitter batch(queue);
  workload.tallies[0] = 0;
  batch.dispatch(workload.tally, Grid{Workload::items}, workload.tallies.data(), 0u);
  batch.submit().wait();
  return workload.tallies[0] == 1;
}

}  // namespace uptempo::bench
