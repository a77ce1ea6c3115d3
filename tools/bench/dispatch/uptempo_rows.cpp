// Rows of this library's batches and recordings. They share one queue, as the raw rows do: its
// publications use that many of the process's 4,096 events.
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <uptempo/dispatch/batch_submitter.hpp>
#include <uptempo/recording/recording.hpp>
#include "tools/bench/dispatch/queue_gate.hpp"
#include "tools/bench/dispatch/row.hpp"
#include "tools/bench/dispatch/without_events.hpp"

namespace uptempo::bench {
namespace {

constexpr uint32_t kPublications = 1024;

// Direct access also in the counting run, whose counters look like a tool that interposes
// (counters.h).
QueueOptions queue_options(KernargPlacement kernargs = KernargPlacement::host) {
  return {.packets = kRing,
          .publications = kPublications,
          .timing_signals = 1,
          .kernarg_bytes = 8 << 20,
          .kernargs = kernargs,
          .access = RingAccessMode::direct};
}

using Tally = Prepared<uint32_t*, uint32_t>;

class UptempoRow : public Row {
 public:
  UptempoRow(const Workload& workload, std::shared_ptr<Queue> queue)
      : workload_(workload),
        queue_(std::move(queue)),
        batch_(*queue_),
        tally_(batch_.prepare(workload.tally, Grid{Workload::kItems})) {}

  void prepare(const Load&) override { queue_->reclaim(); }
  void close_gate() override { gate_.close(batch_); }
  void open_gate() override { gate_.open(); }
  void wait() override { last_.wait(WaitPolicy::active()); }

 protected:
  const Workload& workload_;
  const std::shared_ptr<Queue> queue_;
  QueueGate gate_;
  BatchSubmitter batch_;
  const Tally tally_;
  Completion last_;
};

class Single final : public UptempoRow {
 public:
  using UptempoRow::UptempoRow;
  std::string_view name() const override { return "uptempo-single"; }
  // Each dispatch is a publication with its own signal; the gate is one more.
  uint32_t max_dispatches() const override { return kPublications - 1; }

  void submit(const Load& load) override {
    for (uint32_t i = 0; i < load.dispatches(); ++i) {
      tally_.dispatch(workload_.tallies.data(), i);
      last_ = batch_.submit();
    }
  }
};

// Three ways to fill a batch: dispatch by dispatch with kernel and grid, dispatch by dispatch
// prepared, and all prepared dispatches at once.
template <class Fill>
class Batch final : public UptempoRow {
 public:
  Batch(const Workload& workload, std::shared_ptr<Queue> queue, std::string_view name, Fill fill)
      : UptempoRow(workload, std::move(queue)), name_(name), fill_(fill) {}
  std::string_view name() const override { return name_; }

  void submit(const Load& load) override {
    for (uint32_t first = 0; first < load.dispatches(); first += load.batch) {
      fill_(batch_, tally_, first, load.batch);
      last_ = batch_.submit();
    }
  }

 private:
  const std::string_view name_;
  const Fill fill_;
};

// Prepared dispatches that declare their reads and writes, in batches with the fewest fences.
// Either the first batch of the load repeatedly, as a program repeats a step, with one submitter
// per length as for separate steps; or with other accesses than the previous batch, so that the
// plan is computed again.
class Planned final : public UptempoRow {
 public:
  enum class Shape : uint8_t {
    chain,   // each reads what the previous one wrote
    slices,  // each has its own slice
    anew,    // a chain that is declared differently than in the previous batch
  };
  Planned(const Workload& workload, std::shared_ptr<Queue> queue, Shape shape,
          std::string_view name)
      : UptempoRow(workload, std::move(queue)), shape_(shape), name_(name) {}
  std::string_view name() const override { return name_; }
  uint32_t times(uint32_t i, const Load& load) const override { return first_batch_again(i, load); }

  void prepare(const Load& load) override {
    UptempoRow::prepare(load);
    step_ = &steps_.try_emplace(load.batch, *queue_, workload_.tally).first->second;
  }

  void submit(const Load& load) override {
    uint32_t* const tallies = workload_.tallies.data();
    for (uint32_t batch = 0; batch < load.repeats; ++batch) {
      const bool swapped = shape_ == Shape::anew && step_->batches++ % 2 != 0;
      for (uint32_t i = 0; i < load.batch; ++i) {
        uint32_t* const touched = shape_ == Shape::slices ? tallies + i : tallies;
        const size_t words = shape_ == Shape::slices ? 1 : kMaxDispatches;
        CommandRef says = step_->tally.dispatch(tallies, i);
        if (swapped) {
          says.writes(touched, words).reads(touched, words);
        } else {
          says.reads(touched, words).writes(touched, words);
        }
      }
      last_ = step_->batch.submit();
    }
  }

 private:
  struct Step {
    Step(Queue& queue, const Kernel<uint32_t*, uint32_t>& kernel)
        : batch(queue), tally(batch.prepare(kernel, Grid{Workload::kItems})) {}
    BatchSubmitter batch;
    const Tally tally;
    uint32_t batches = 0;
  };

  const Shape shape_;
  const std::string_view name_;
  std::map<uint32_t, Step> steps_;
  Step* step_ = nullptr;
};

// One recording per batch length, replayed for every batch of a load. `patched`: one argument of
// every node, its dispatch number, is changed before each replay.
class Replay final : public UptempoRow {
 public:
  Replay(const Workload& workload, std::shared_ptr<Queue> queue, std::string_view name,
         bool patched)
      : UptempoRow(workload, std::move(queue)), name_(name), patched_(patched) {}
  std::string_view name() const override { return name_; }
  uint32_t times(uint32_t i, const Load& load) const override {
    return patched_ ? Row::times(i, load) : first_batch_again(i, load);
  }

  void prepare(const Load& load) override {
    UptempoRow::prepare(load);
    recorded_ = &recordings_[load.batch];
    if (recorded_->recording != nullptr) return;
    // Every node of every batch of a load may be patched before the first replay completes.
    recorded_->recording = std::make_unique<Recording>(
        *queue_, RecordingOptions{.spare_kernarg_bytes = size_t{64} * kMaxDispatches});
    for (uint32_t i = 0; i < load.batch; ++i)
      recorded_->nodes.push_back(recorded_->recording->dispatch(
          workload_.tally, Grid{Workload::kItems}, workload_.tallies.data(), i));
  }

  void submit(const Load& load) override {
    Recording& recording = *recorded_->recording;
    uint32_t next = 0;
    for (uint32_t batch = 0; batch < load.repeats; ++batch) {
      if (patched_)
        for (const Node<uint32_t*, uint32_t>& node : recorded_->nodes)
          recording.set<1>(node, next++);
      last_ = recording.replay(*queue_);
    }
  }

 private:
  struct Recorded {
    std::unique_ptr<Recording> recording;
    std::vector<Node<uint32_t*, uint32_t>> nodes;
  };

  const std::string_view name_;
  const bool patched_;
  std::map<uint32_t, Recorded> recordings_;
  Recorded* recorded_ = nullptr;
};

}  // namespace

Rows uptempo_rows(const Workload& workload) {
  const auto queue = std::make_shared<Queue>(workload.gpu, queue_options());
  Rows rows;
  rows.push_back(std::make_unique<Single>(workload, queue));
  const auto add_on = [&](const std::shared_ptr<Queue>& on, std::string_view name, auto fill) {
    rows.push_back(std::make_unique<Batch<decltype(fill)>>(workload, on, name, fill));
  };
  const auto add = [&](std::string_view name, auto fill) { add_on(queue, name, fill); };
  uint32_t* const tallies = workload.tallies.data();
  add("uptempo-dispatch", [tallies, &tally = workload.tally](BatchSubmitter& batch, const Tally&,
                                                             uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
      batch.dispatch(tally, Grid{Workload::kItems}, tallies, first + i);
  });
  // The same with arguments given at run time, in both forms.
  const auto any = Kernel<Arguments>::of(workload.tally.shared_info());
  add("uptempo-dispatch-packed",
      [tallies, any](BatchSubmitter& batch, const Tally&, uint32_t first, uint32_t count) {
        struct {
          uint32_t* tallies;
          uint32_t dispatch;
        } packed{tallies, first};
        for (uint32_t i = 0; i < count; ++i, ++packed.dispatch)
          batch.dispatch(any, Grid{Workload::kItems}, std::as_bytes(std::span(&packed, 1)));
      });
  add("uptempo-dispatch-params",
      [tallies, any](BatchSubmitter& batch, const Tally&, uint32_t first, uint32_t count) {
        uint32_t* address = tallies;
        uint32_t dispatch = first;
        void* params[] = {&address, &dispatch};
        for (uint32_t i = 0; i < count; ++i, ++dispatch)
          batch.dispatch(any, Grid{Workload::kItems}, params);
      });
  add("uptempo-prepared",
      [tallies](BatchSubmitter&, const Tally& tally, uint32_t first, uint32_t count) {
        for (uint32_t i = 0; i < count; ++i) tally.dispatch(tallies, first + i);
      });
  const auto all_at_once = [tallies](BatchSubmitter&, const Tally& tally, uint32_t first,
                                     uint32_t count) {
    tally.dispatch_each(count, [=](uint32_t i) noexcept { return std::tuple(tallies, first + i); });
  };
  add("uptempo-batch", all_at_once);
  const auto add_planned = [&](std::string_view name, Planned::Shape shape) {
    rows.push_back(std::make_unique<Planned>(workload, queue, shape, name));
  };
  add_planned("uptempo-planned", Planned::Shape::chain);
  add_planned("uptempo-planned-slices", Planned::Shape::slices);
  add_planned("uptempo-planned-anew", Planned::Shape::anew);
  rows.push_back(std::make_unique<Replay>(workload, queue, "uptempo-replay", false));
  rows.push_back(std::make_unique<Replay>(workload, queue, "uptempo-replay-patched", true));
  // The same with arguments in device memory, where the host reaches it.
  const WithoutEvents without_events;
  const auto on_device =
      std::make_shared<Queue>(workload.gpu, queue_options(KernargPlacement::device));
  if (!on_device->kernargs().is_on_device()) return rows;
  add_on(on_device, "uptempo-batch-device", all_at_once);
  rows.push_back(
      std::make_unique<Replay>(workload, on_device, "uptempo-replay-patched-device", true));
  return rows;
}

}  // namespace uptempo::bench
