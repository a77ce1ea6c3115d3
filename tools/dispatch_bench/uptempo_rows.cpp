// This library's own ways. They share a queue, as the raw rows do: its publications hold as many of the process's 4,096 events.
#include <map>
#include <memory>
#include <vector>

#include "aql/packet.hpp"
#include "dispatch_bench/row.hpp"
#include "engine/dispatch/batch.hpp"
#include "engine/dispatch/recording.hpp"

namespace uptempo::bench {
namespace {

constexpr uint32_t kPublications = 1024;

QueueOptions queue_options() {
  return {.packets = kRing, .publications = kPublications, .timing_signals = 1, .kernarg_bytes = 8 << 20};
}

class UptempoRow : public Row {
 public:
  UptempoRow(const Workload& workload, std::shared_ptr<Queue> queue)
      : workload_(workload), queue_(std::move(queue)), batch_(*queue_) {}

  void prepare(const Load&) override { queue_->reclaim(); }
  void close_gate() override {
    hsa_signal_store_screlease(gate_.handle(), 1);
    batch_.raw(aql::to_packet(
        aql::BarrierAnd{.flags = {aql::Barrier::on, aql::FenceScope::none, aql::FenceScope::none},
                        .dependencies = {gate_.handle()}}));
    batch_.submit();
  }
  void open_gate() override { hsa_signal_store_screlease(gate_.handle(), 0); }
  void wait() override { last_.wait({.mode = WaitMode::active}); }

 protected:
  void dispatch(uint32_t i) {
    batch_.dispatch(workload_.tally, Grid{Workload::items}, workload_.tallies.data(), i);
  }

  const Workload& workload_;
  const std::shared_ptr<Queue> queue_;
  Signal gate_{SignalKind::event_less, 0};
  BatchSubmitter batch_;
  Completion last_;
};

class Single final : public UptempoRow {
 public:
  using UptempoRow::UptempoRow;
  std::string_view name() const override { return "uptempo-single"; }
  // Each is a publication with a signal of its own; the gate is one more.
  uint32_t max_dispatches() const override { return kPublications - 1; }

  void submit(const Load& load) override {
    for (uint32_t i = 0; i < load.dispatches(); ++i) {
      dispatch(i);
      last_ = batch_.submit();
    }
  }
};

class Batch final : public UptempoRow {
 public:
  using UptempoRow::UptempoRow;
  std::string_view name() const override { return "uptempo-batch"; }

  void submit(const Load& load) override {
    uint32_t next = 0;
    for (uint32_t batch = 0; batch < load.repeats; ++batch) {
      for (uint32_t i = 0; i < load.batch; ++i) dispatch(next++);
      last_ = batch_.submit();
    }
  }
};

// Recorded before, a recording for each batch of a load; no argument is written again.
class Replay : public UptempoRow {
 public:
  using UptempoRow::UptempoRow;
  std::string_view name() const override { return "uptempo-replay"; }

  void prepare(const Load& load) override {
    UptempoRow::prepare(load);
    std::vector<Recorded>& batches = recorded_[load.batch];
    while (batches.size() < load.repeats) {
      // A load is complete before the next one begins: nothing is patched while it is in flight.
      Recorded& made = batches.emplace_back(
          Recorded{std::make_unique<Recording>(*queue_, RecordingOptions{.spare_kernarg_bytes = 0}), {}});
      const auto first = static_cast<uint32_t>(batches.size() - 1) * load.batch;
      for (uint32_t i = 0; i < load.batch; ++i)
        made.nodes.push_back(made.recording->dispatch(workload_.tally, Grid{Workload::items},
                                                      workload_.tallies.data(), first + i));
    }
    current_ = &batches;
  }

  void submit(const Load&) override {
    for (const Recorded& batch : *current_) last_ = batch.recording->replay(*queue_);
  }

 protected:
  struct Recorded {
    std::unique_ptr<Recording> recording;
    std::vector<Node<uint32_t*, uint32_t>> nodes;
  };
  const std::vector<Recorded>* current_ = nullptr;

 private:
  std::map<uint32_t, std::vector<Recorded>> recorded_;  // by length of batch
};

// The same with one argument of each node given anew.
class ReplayPatched final : public Replay {
 public:
  using Replay::Replay;
  std::string_view name() const override { return "uptempo-replay-patched"; }

  void submit(const Load&) override {
    uint32_t dispatch = 0;
    for (const Recorded& batch : *current_) {
      for (const auto& node : batch.nodes) batch.recording->set<1>(node, dispatch++);
      last_ = batch.recording->replay(*queue_);
    }
  }
};

}  // namespace

Rows uptempo_rows(const Workload& workload) {
  const auto queue = std::make_shared<Queue>(workload.gpu, queue_options());
  Rows rows;
  rows.push_back(std::make_unique<Single>(workload, queue));
  rows.push_back(std::make_unique<Batch>(workload, queue));
  rows.push_back(std::make_unique<Replay>(workload, queue));
  rows.push_back(std::make_unique<ReplayPatched>(workload, queue));
  return rows;
}

}  // namespace uptempo::bench
