// Rows that use HIP as its users do. HIP owns its queue, so no gate is possible: the device works
// while a batch is submitted.
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include <uptempo/dispatch/batch_submitter.hpp>
#include "tools/bench/dispatch/hip_graph_importer.hpp"
#include "tools/bench/dispatch/hip_peer.h"
#include "tools/bench/dispatch/peer_library.hpp"
#include "tools/bench/dispatch/queue_gate.hpp"
#include "tools/bench/dispatch/row.hpp"
#include "tools/bench/dispatch/without_events.hpp"

namespace uptempo::bench {
namespace {

void require(const char* error, const char* call) {
  if (error != nullptr) throw std::runtime_error(std::string(call) + ": " + error);
}

// Submits every dispatch by hipLaunchKernel, or every batch by hipGraphLaunch.
class HipRow final : public Row {
 public:
  HipRow(const Workload& workload, const uptempo_hip_peer& hip, bool graphs)
      : workload_(workload), hip_(hip), graphs_(graphs) {}
  std::string_view name() const override { return graphs_ ? "hip-graph" : "hip-launch"; }
  uint32_t times(uint32_t i, const Load& load) const override {
    return graphs_ ? first_batch_again(i, load) : Row::times(i, load);
  }
  void prepare(const Load& load) override {
    require(hip_.prepare(load.batch, load.repeats, workload_.tallies.data(), graphs_),
            graphs_ ? "preparing HIP graphs" : "preparing HIP");
  }
  void close_gate() override {}
  void open_gate() override {}
  void submit(const Load&) override {
    if (graphs_)
      require(hip_.launch_graphs(), "hipGraphLaunch");
    else
      require(hip_.launch(), "hipLaunchKernel");
  }
  void wait() override { require(hip_.wait(), "hipStreamSynchronize"); }

 private:
  const Workload& workload_;
  const uptempo_hip_peer& hip_;
  const bool graphs_;
};

// The graph of that row, imported and replayed in a queue of its own, with a gate.
class Imported final : public Row {
 public:
  Imported(const Workload& workload, const uptempo_hip_peer& hip, ImportHipGraph import)
      : workload_(workload),
        hip_(hip),
        import_(import),
        queue_(workload.gpu, {.packets = kRing,
                              .publications = 1024,
                              .timing_signals = 1,
                              .access = RingAccessMode::direct}),
        batch_(queue_) {}
  std::string_view name() const override { return "uptempo-hip-graph"; }
  uint32_t times(uint32_t i, const Load& load) const override { return first_batch_again(i, load); }
  void prepare(const Load& load) override {
    queue_.reclaim();
    graph_ = graphs_[load.batch].get();
    if (graph_ != nullptr) return;
    require(hip_.prepare(load.batch, load.repeats, workload_.tallies.data(), 1),
            "preparing HIP graphs");
    import_(graphs_[load.batch], queue_, hip_.graph());
    graph_ = graphs_[load.batch].get();
  }
  void close_gate() override { gate_.close(batch_); }
  void open_gate() override { gate_.open(); }
  void submit(const Load& load) override {
    for (uint32_t batch = 0; batch < load.repeats; ++batch) last_ = graph_->replay(queue_);
  }
  void wait() override { last_.wait(WaitPolicy::active()); }

 private:
  const Workload& workload_;
  const uptempo_hip_peer& hip_;
  const ImportHipGraph import_;
  Queue queue_;
  QueueGate gate_;
  BatchSubmitter batch_;
  std::map<uint32_t, std::unique_ptr<ImportedGraph>> graphs_;  // by batch length
  ImportedGraph* graph_ = nullptr;
  Completion last_;
};

}  // namespace

Peer add_hip_rows(Rows& rows, const Workload& workload) {
  Peer peer{.name = "HIP", .note = "its rows are not gated"};
  const auto functions = open_peer<uptempo_hip_peer_t>("libdispatch_bench_hip.so",
                                                       "uptempo_hip_peer_functions", peer.missing);
  if (functions == nullptr) return peer;
  peer.version = functions()->version();
  rows.push_back(std::make_unique<HipRow>(workload, *functions(), false));
  rows.push_back(std::make_unique<HipRow>(workload, *functions(), true));
  std::string no_import;
  const auto import = open_peer<ImportHipGraph>("libdispatch_bench_hip_graph.so",
                                                "uptempo_import_hip_graph", no_import);
  if (import == nullptr) {
    peer.note += "; no uptempo-hip-graph: " + no_import;
    return peer;
  }
  const WithoutEvents without_events;
  rows.push_back(std::make_unique<Imported>(workload, *functions(), import));
  return peer;
}

}  // namespace uptempo::bench
