// Loops on the HSA API as its users write them, through hsa.h only, without this library.
#include <atomic>

#include "tools/bench/dispatch/raw_queue.hpp"

namespace uptempo::bench {
namespace {

class HsaRow : public Row {
 public:
  explicit HsaRow(std::shared_ptr<RawQueue> queue) : queue_(std::move(queue)) {}

  void prepare(const Load& load) override {
    load_ = load;
    queue_->prepare(load);
  }
  void close_gate() override { queue_->close_gate(); }
  void open_gate() override { queue_->open_gate(); }
  void wait() override { queue_->wait(load_); }

 protected:
  static uint64_t reserve(hsa_queue_t* queue, uint32_t count) noexcept {
    const uint64_t first = hsa_queue_add_write_index_relaxed(queue, count);
    while (first + count - hsa_queue_load_read_index_scacquire(queue) > queue->size) {
    }
    return first;
  }

  // First words of a batch's packets, computed once.
  struct Words {
    explicit Words(uint32_t batch)
        : first(first_word_of(0, batch)),
          interior(first_word_of(1, 3)),
          last(first_word_of(batch - 1, batch)),
          last_index(batch - 1) {}
    uint32_t of(uint32_t i) const noexcept {
      return i == last_index ? last : i == 0 ? first : interior;
    }
    uint32_t first, interior, last, last_index;
  };

  // Values that the loop keeps in registers.
  struct Target {
    explicit Target(const RawQueue& raw)
        : ring(raw.ring()),
          mask(raw.mask()),
          kernargs(raw.kernargs(0)),
          stride(static_cast<size_t>(raw.kernargs(1) - raw.kernargs(0))),
          kernel_object(raw.workload().tally.info().object),
          tallies(raw.workload().tallies.data()) {}

    // Writes dispatch `i` of the load into the slot of packet `index`: arguments first, header
    // last.
    void write(uint64_t index, uint32_t i, uint32_t first_word,
               hsa_signal_t signal) const noexcept {
      auto* const arguments = reinterpret_cast<TallyArguments*>(kernargs + i * stride);
      arguments->tallies = tallies;
      arguments->dispatch = i;
      hsa_kernel_dispatch_packet_t* const packet = ring + (index & mask);
      packet->workgroup_size_x = Workload::kItems;
      packet->workgroup_size_y = 1;
      packet->workgroup_size_z = 1;
      packet->reserved0 = 0;
      packet->grid_size_x = Workload::kItems;
      packet->grid_size_y = 1;
      packet->grid_size_z = 1;
      packet->private_segment_size = 0;
      packet->group_segment_size = 0;
      packet->kernel_object = kernel_object;
      packet->kernarg_address = arguments;
      packet->reserved2 = 0;
      packet->completion_signal = signal;
      std::atomic_ref(*reinterpret_cast<uint32_t*>(packet))
          .store(first_word, std::memory_order_release);
    }

    hsa_kernel_dispatch_packet_t* ring;
    uint64_t mask;
    std::byte* kernargs;
    size_t stride;
    uint64_t kernel_object;
    uint32_t* tallies;
  };

  static void ring_doorbell(hsa_queue_t* queue, uint64_t index) noexcept {
    hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(index));
  }

  const std::shared_ptr<RawQueue> queue_;
  Load load_;
};

// Reserves slots and rings the doorbell once for each batch, or for each dispatch.
template <bool doorbell_each>
class Careful final : public HsaRow {
 public:
  using HsaRow::HsaRow;
  std::string_view name() const override {
    return doorbell_each ? "hsa-doorbell-each" : "hsa-careful";
  }

  void submit(const Load& load) override {
    const RawQueue& raw = *queue_;
    hsa_queue_t* const queue = raw.queue();
    const Target target(raw);
    const uint32_t last = load.batch - 1;
    const Words words(load.batch);
    uint32_t dispatch = 0;
    for (uint32_t batch = 0; batch < load.repeats; ++batch) {
      uint64_t index = doorbell_each ? 0 : reserve(queue, load.batch);
      for (uint32_t i = 0; i < load.batch; ++i, ++index) {
        if constexpr (doorbell_each) index = reserve(queue, 1);
        target.write(index, dispatch++, words.of(i),
                     i == last ? raw.signal(batch) : hsa_signal_t{0});
        if constexpr (doorbell_each) ring_doorbell(queue, index);
      }
      if constexpr (!doorbell_each) ring_doorbell(queue, index - 1);
    }
  }
};

// As in tutorials: system scope everywhere, and a doorbell, a signal and a wait for each kernel.
class Naive final : public HsaRow {
 public:
  using HsaRow::HsaRow;
  std::string_view name() const override { return "hsa-naive"; }
  bool has_submit() const override { return false; }

  void submit(const Load& load) override {
    const RawQueue& raw = *queue_;
    hsa_queue_t* const queue = raw.queue();
    const Target target(raw);
    const hsa_signal_t signal = raw.signal(0);
    for (uint32_t i = 0; i < load.dispatches(); ++i) {
      hsa_signal_store_relaxed(signal, 1);
      const uint64_t index = reserve(queue, 1);
      target.write(index, i, first_word_of(0, 1), signal);
      ring_doorbell(queue, index);
      while (hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX,
                                       HSA_WAIT_STATE_BLOCKED) >= 1) {
      }
    }
  }
  void wait() override {}
};

}  // namespace

Rows hsa_rows(std::shared_ptr<RawQueue> queue) {
  Rows rows;
  rows.push_back(std::make_unique<Careful<false>>(queue));
  rows.push_back(std::make_unique<Careful<true>>(queue));
  rows.push_back(std::make_unique<Naive>(queue));
  return rows;
}

}  // namespace uptempo::bench
