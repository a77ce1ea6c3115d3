// Single launches on a stream, each published at once, with one event recorded after all of them:
// by Stream, by Stream as under a profiler, and by a Launcher. Without a profiler's request, access
// is direct also in the counting run, whose counters look like a tool that interposes (counters.h).
#include <memory>
#include <span>
#include <string_view>

#include <uptempo/stream/launcher.hpp>
#include <uptempo/stream/stream.hpp>
#include "tools/bench/dispatch/row.hpp"
#include "tools/bench/dispatch/without_events.hpp"

namespace uptempo::bench {
namespace {

class StreamRow : public Row {
 public:
  StreamRow(const Workload& workload, std::string_view name,
            RingAccessMode access = RingAccessMode::direct,
            KernargPlacement kernargs = KernargPlacement::host)
      : workload_(workload),
        name_(name),
        streams_(workload.gpu,
                 {.own_queues = 1,  // for the gate
                  .queue = {.packets = kRing,
                            .publications = 128,
                            .timing_signals = 1,
                            .kernarg_bytes = 8 << 20,
                            .kernargs = kernargs,
                            .access = access}}),
        stream_(streams_) {
    // Opens the queue for the gate, whose signals need events. HIP 6.4's graphs may use up all that
    // are left.
    StreamRow::close_gate();
    StreamRow::open_gate();
    stream_.synchronize();
  }

  std::string_view name() const override { return name_; }
  bool is_on_device() const { return streams_.kernargs().is_on_device(); }
  void prepare(const Load&) override {}
  void close_gate() override {
    hsa_signal_store_screlease(gate_.handle(), 1);
    stream_.after(gate_);
  }
  void open_gate() override { hsa_signal_store_screlease(gate_.handle(), 0); }
  void submit(const Load& load) override {
    for (uint32_t i = 0; i < load.dispatches(); ++i)
      stream_.launch(workload_.tally, Grid{Workload::kItems}, workload_.tallies.data(), i);
    stream_.record();
  }
  void wait() override { stream_.synchronize(WaitPolicy::active()); }

 protected:
  const Workload& workload_;
  const std::string_view name_;
  Signal gate_{SignalKind::event_less, 0};
  Streams streams_;
  Stream stream_;
};

// With arguments given at run time, as packed bytes.
class PackedRow final : public StreamRow {
 public:
  explicit PackedRow(const Workload& workload)
      : StreamRow(workload, "uptempo-stream-packed"),
        tally_(Kernel<Arguments>::of(workload.tally.shared_info())) {}
  void submit(const Load& load) override {
    struct {
      uint32_t* tallies;
      uint32_t dispatch;
    } packed{workload_.tallies.data(), 0};
    for (uint32_t i = 0; i < load.dispatches(); ++i, ++packed.dispatch)
      stream_.launch(tally_, Grid{Workload::kItems}, std::as_bytes(std::span(&packed, 1)));
    stream_.record();
  }

 private:
  const Kernel<Arguments> tally_;
};

// Always the arguments of the first dispatch, which the launcher has written once.
class LauncherRow final : public StreamRow {
 public:
  explicit LauncherRow(const Workload& workload)
      : StreamRow(workload, "uptempo-launcher"), launcher_(streams_, workload.tally, 8) {}

  uint32_t times(uint32_t i, const Load& load) const override {
    return i == 0 ? load.dispatches() : 0;
  }
  void submit(const Load& load) override {
    for (uint32_t i = 0; i < load.dispatches(); ++i)
      launcher_.launch(stream_, Grid{Workload::kItems}, workload_.tallies.data(), 0u);
    stream_.record();
  }

 private:
  Launcher<uint32_t*, uint32_t> launcher_;
};

}  // namespace

Rows stream_rows(const Workload& workload) {
  Rows rows;
  rows.push_back(std::make_unique<StreamRow>(workload, "uptempo-stream"));
  rows.push_back(std::make_unique<PackedRow>(workload));
  // Index and doorbell of each launch by HSA calls, as where a tool interposes.
  rows.push_back(
      std::make_unique<StreamRow>(workload, "uptempo-stream-hsa-calls", RingAccessMode::hsa_calls));
  rows.push_back(std::make_unique<LauncherRow>(workload));
  const WithoutEvents without_events;
  auto on_device = std::make_unique<StreamRow>(workload, "uptempo-stream-device",
                                               RingAccessMode::direct, KernargPlacement::device);
  if (on_device->is_on_device()) rows.push_back(std::move(on_device));
  return rows;
}

}  // namespace uptempo::bench
