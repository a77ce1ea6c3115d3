// Rows of the C interface. They submit the work of `uptempo-dispatch-packed`,
// `uptempo-dispatch-params` and `uptempo-stream-packed`, call by call.
#include <uptempo/kernels/basics.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <uptempo/uptempo.h>
#include <uptempo/aql/packet.hpp>
#include <uptempo/runtime/signal.hpp>
#include "tools/bench/dispatch/row.hpp"
#include "tools/bench/dispatch/without_events.hpp"

namespace uptempo::bench {
namespace {

void require(uptempo_status status) {
  if (status != UPTEMPO_OK) throw std::runtime_error(uptempo_error()->message);
}

// Shared by the rows: the kernel, as the C interface has it.
struct CKernel {
  explicit CKernel(const Workload& workload) {
    require(uptempo_runtime_create(nullptr, &runtime));
    require(
        uptempo_runtime_find_gpu(runtime, pci_address(workload.gpu.properties()).c_str(), &gpu));
    const std::span<const std::byte> code = builtin_kernels::basics();
    require(uptempo_program_create(gpu, code.data(), code.size(), nullptr, &program));
    require(uptempo_kernel_create(program, "tally", nullptr, &tally));
  }
  ~CKernel() {
    uptempo_kernel_destroy(tally);
    uptempo_program_destroy(program);
    uptempo_runtime_destroy(runtime);
  }
  CKernel(const CKernel&) = delete;
  CKernel& operator=(const CKernel&) = delete;

  uptempo_runtime* runtime = nullptr;
  const uptempo_agent* gpu = nullptr;
  uptempo_program* program = nullptr;
  uptempo_kernel* tally = nullptr;
};

struct Packed {
  uint32_t* tallies;
  uint32_t dispatch;
};

uptempo_queue_options queue_options(uint32_t publications) {
  uptempo_queue_options options{};
  options.size = sizeof options;
  options.packets = kRing;
  options.publications = publications;
  options.timing_signals = 1;
  options.kernarg_bytes = 8 << 20;
  options.access = UPTEMPO_RING_DIRECT;
  return options;
}

class CBatchRow final : public Row {
 public:
  enum class Form : uint8_t { packed, params };
  CBatchRow(const Workload& workload, std::shared_ptr<CKernel> kernel, Form form)
      : workload_(workload), kernel_(std::move(kernel)), form_(form) {
    const WithoutEvents without_events;
    const uptempo_queue_options options = queue_options(1024);
    require(uptempo_queue_create(kernel_->gpu, &options, &queue_));
    require(uptempo_batch_create(queue_, nullptr, &batch_));
  }
  ~CBatchRow() override {
    uptempo_batch_destroy(batch_);
    uptempo_queue_destroy(queue_);
  }

  std::string_view name() const override {
    return form_ == Form::packed ? "uptempo-c-packed" : "uptempo-c-params";
  }
  void prepare(const Load&) override { require(uptempo_queue_reclaim(queue_)); }
  void close_gate() override {
    hsa_signal_store_screlease(gate_.handle(), 1);
    const aql::Packet64 packet = aql::to_packet(
        aql::BarrierAnd{.flags = {aql::Barrier::on, aql::FenceScope::none, aql::FenceScope::none},
                        .dependencies = {gate_.handle()}});
    require(uptempo_batch_raw(batch_, &packet));
    require(uptempo_batch_submit(batch_, UPTEMPO_NO_LIMIT, nullptr, &last_));
  }
  void open_gate() override { hsa_signal_store_screlease(gate_.handle(), 0); }
  void submit(const Load& load) override {
    for (uint32_t first = 0; first < load.dispatches(); first += load.batch) {
      if (form_ == Form::packed) {
        fill_packed(first, load.batch);
      } else {
        fill_params(first, load.batch);
      }
      require(uptempo_batch_submit(batch_, UPTEMPO_NO_LIMIT, UPTEMPO_HERE, &last_));
    }
  }
  void wait() override {
    require(uptempo_completion_wait(last_, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_ACTIVE));
  }

 private:
  void fill_packed(uint32_t first, uint32_t count) {
    const uptempo_grid grid = uptempo_grid_of(Workload::kItems, Workload::kItems);
    Packed packed{workload_.tallies.data(), first};
    for (uint32_t i = 0; i < count; ++i, ++packed.dispatch)
      require(uptempo_batch_dispatch(batch_, kernel_->tally, &grid,
                                     uptempo_packed(&packed, sizeof packed)));
  }
  void fill_params(uint32_t first, uint32_t count) {
    const uptempo_grid grid = uptempo_grid_of(Workload::kItems, Workload::kItems);
    uint32_t* address = workload_.tallies.data();
    uint32_t dispatch = first;
    void* params[] = {&address, &dispatch};
    for (uint32_t i = 0; i < count; ++i, ++dispatch)
      require(uptempo_batch_dispatch(batch_, kernel_->tally, &grid, uptempo_params(params, 2)));
  }

  const Workload& workload_;
  const std::shared_ptr<CKernel> kernel_;
  const Form form_;
  const Signal gate_{SignalKind::event_less, 0};
  uptempo_queue* queue_ = nullptr;
  uptempo_batch* batch_ = nullptr;
  uptempo_completion last_{};
};

class CStreamRow final : public Row {
 public:
  CStreamRow(const Workload& workload, std::shared_ptr<CKernel> kernel)
      : workload_(workload), kernel_(std::move(kernel)) {
    const WithoutEvents without_events;
    const uptempo_queue_options queue = queue_options(128);
    uptempo_streams_options options{};
    options.size = sizeof options;
    options.queue = &queue;
    options.own_queues = 1;  // for the gate
    require(uptempo_streams_create(kernel_->gpu, &options, &streams_));
    require(uptempo_stream_create(streams_, nullptr, &stream_));
    require(uptempo_event_create(nullptr, &event_));
    close();
    open_gate();
    wait();
  }
  ~CStreamRow() override {
    uptempo_event_destroy(event_);
    uptempo_stream_destroy(stream_);
    uptempo_streams_destroy(streams_);
  }

  std::string_view name() const override { return "uptempo-c-stream"; }
  void prepare(const Load&) override {}
  void close_gate() override { close(); }
  void open_gate() final { hsa_signal_store_screlease(gate_.handle(), 0); }
  void submit(const Load& load) override {
    const uptempo_grid grid = uptempo_grid_of(Workload::kItems, Workload::kItems);
    Packed packed{workload_.tallies.data(), 0};
    for (uint32_t i = 0; i < load.dispatches(); ++i, ++packed.dispatch)
      require(uptempo_stream_launch(stream_, kernel_->tally, &grid,
                                    uptempo_packed(&packed, sizeof packed), UPTEMPO_HERE));
    require(uptempo_stream_record(stream_, event_));
  }
  void wait() final {
    require(uptempo_stream_synchronize(stream_, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_ACTIVE));
  }

 private:
  void close() {
    hsa_signal_store_screlease(gate_.handle(), 1);
    require(uptempo_stream_after_signal(stream_, gate_.handle().handle, 0));
  }

  const Workload& workload_;
  const std::shared_ptr<CKernel> kernel_;
  const Signal gate_{SignalKind::event_less, 0};
  uptempo_streams* streams_ = nullptr;
  uptempo_stream* stream_ = nullptr;
  uptempo_event* event_ = nullptr;
};

}  // namespace

Rows c_rows(const Workload& workload) {
  const auto kernel = std::make_shared<CKernel>(workload);
  Rows rows;
  rows.push_back(std::make_unique<CBatchRow>(workload, kernel, CBatchRow::Form::packed));
  rows.push_back(std::make_unique<CBatchRow>(workload, kernel, CBatchRow::Form::params));
  rows.push_back(std::make_unique<CStreamRow>(workload, kernel));
  return rows;
}

}  // namespace uptempo::bench
