#include <uptempo/kernels/basics.hpp>

#include "tools/bench/dispatch/peer_library.hpp"
#include "tools/bench/dispatch/raw_queue.hpp"

namespace uptempo::bench {

Workload::Workload(const Agent& agent)
    : gpu(agent),
      program(agent, builtin_kernels::basics()),
      tally(program.kernel<uint32_t*, uint32_t>("tally")),
      tallies(agent, kMaxDispatches) {}

Peer add_pocl_rows(Rows& rows, const Workload& workload) {
  Peer peer{.name = "PoCL", .note = "its device is the processor and its row is not gated"};
  const auto add = open_peer<void (*)(Rows&, Peer&, uint32_t*)>(
      "libdispatch_bench_pocl.so", "uptempo_add_pocl_row", peer.missing);
  if (add != nullptr) add(rows, peer, workload.tallies.data());
  return peer;
}

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
