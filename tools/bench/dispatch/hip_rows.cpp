// Rows that use HIP as its users do. HIP owns its queue, so no gate is possible: the device works
// while a batch is submitted.
#include <stdexcept>

#include "tools/bench/dispatch/hip_peer.h"
#include "tools/bench/dispatch/peer_library.hpp"
#include "tools/bench/dispatch/row.hpp"

namespace uptempo::bench {
namespace {

void require(const char* error, const char* call) {
  if (error != nullptr) throw std::runtime_error(std::string(call) + ": " + error);
}

class HipRow : public Row {
 public:
  HipRow(const Workload& workload, const uptempo_hip_peer& hip) : workload_(workload), hip_(hip) {}
  void close_gate() override {}
  void open_gate() override {}
  void wait() override { require(hip_.wait(), "hipStreamSynchronize"); }

 protected:
  const Workload& workload_;
  const uptempo_hip_peer& hip_;
};

class Launch final : public HipRow {
 public:
  using HipRow::HipRow;
  std::string_view name() const override { return "hip-launch"; }
  void prepare(const Load& load) override {
    require(hip_.prepare(load.batch, load.repeats, workload_.tallies.data(), 0), "preparing HIP");
  }
  void submit(const Load&) override { require(hip_.launch(), "hipLaunchKernel"); }
};

class Graph final : public HipRow {
 public:
  using HipRow::HipRow;
  std::string_view name() const override { return "hip-graph"; }
  uint32_t times(uint32_t i, const Load& load) const override { return first_batch_again(i, load); }
  void prepare(const Load& load) override {
    require(hip_.prepare(load.batch, load.repeats, workload_.tallies.data(), 1),
            "preparing HIP graphs");
  }
  void submit(const Load&) override { require(hip_.launch_graphs(), "hipGraphLaunch"); }
};

}  // namespace

Peer add_hip_rows(Rows& rows, const Workload& workload) {
  Peer peer{.name = "HIP", .note = "its rows are not gated"};
  const auto functions = open_peer<uptempo_hip_peer_t>("libdispatch_bench_hip.so",
                                                       "uptempo_hip_peer_functions", peer.missing);
  if (functions == nullptr) return peer;
  peer.version = functions()->version();
  rows.push_back(std::make_unique<Launch>(workload, *functions()));
  rows.push_back(std::make_unique<Graph>(workload, *functions()));
  return peer;
}

}  // namespace uptempo::bench
