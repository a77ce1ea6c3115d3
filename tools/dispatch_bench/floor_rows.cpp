// The floor: the bytes of a batch put into the ring and into kernarg memory by the cheapest stores known, then the write index and one doorbell. No
// headers last, no room proven, nothing counted: no correct submitter can be cheaper, and none may look so.
//
// Which stores are cheapest depends on the machine, so all are tried (each is a row) and the report keeps the best for each batch:
//   copied    from an image in memory       built       from registers
//   ordinary  stores into the cache         streaming   stores past it, a line at a time
#include <immintrin.h>

#include <array>
#include <atomic>
#include <cstring>
#include <type_traits>

#include "aql/amd_abi.hpp"
#include "dispatch_bench/raw_queue.hpp"

namespace uptempo::bench {
namespace {

// One line, written whole.
struct Ordinary {
  static void store(void* line, __m128i a, __m128i b, __m128i c, __m128i d) noexcept {
    auto* const to = static_cast<__m128i*>(line);
    _mm_store_si128(to, a);
    _mm_store_si128(to + 1, b);
    _mm_store_si128(to + 2, c);
    _mm_store_si128(to + 3, d);
  }
  static void finish() noexcept {}
};
struct Streaming {
  static void store(void* line, __m128i a, __m128i b, __m128i c, __m128i d) noexcept {
    auto* const to = static_cast<__m128i*>(line);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
  }
  static void finish() noexcept { _mm_sfence(); }
};

struct alignas(64) Line {
  __m128i part[4];
};

template <class Stores, bool Built, bool Kernargs>
class Floor final : public Row {
 public:
  Floor(std::shared_ptr<RawQueue> queue, const char* name)
      : raw_(std::move(queue)), view_(aql::view(raw_->queue())), name_(name) {}

  std::string_view name() const override { return name_; }

  void prepare(const Load& load) override {
    load_ = load;
    raw_->prepare(load);
    packets_.resize(load.dispatches());
    blocks_.resize(load.dispatches());
    for (uint32_t i = 0; i < load.dispatches(); ++i) {
      const hsa_kernel_dispatch_packet_t packet = raw_->packet(load, i);
      std::memcpy(&packets_[i], &packet, sizeof packet);
      std::memcpy(&blocks_[i], raw_->kernargs(i), sizeof blocks_[i]);
    }
  }
  void close_gate() override { raw_->close_gate(); }
  void open_gate() override { raw_->open_gate(); }
  void wait() override { raw_->wait(load_); }

  void submit(const Load& load) override {
    uint64_t index = view_.write_index != nullptr
                         ? std::atomic_ref(*view_.write_index).load(std::memory_order_relaxed)
                         : hsa_queue_load_write_index_relaxed(raw_->queue());
    uint32_t dispatch = 0;
    for (uint32_t batch = 0; batch < load.repeats; ++batch) {
      if constexpr (Built) {
        build(index, dispatch, load.batch);
      } else {
        copy(index, dispatch, load.batch);
      }
      Stores::finish();
      index += load.batch;
      dispatch += load.batch;
      publish(index);
    }
  }

 private:
  void publish(uint64_t index) const noexcept {
    if (view_.write_index != nullptr && view_.doorbell != nullptr) {
      std::atomic_ref(*view_.write_index).store(index, std::memory_order_release);
      std::atomic_ref(*view_.doorbell).store(index - 1, std::memory_order_release);
    } else {
      hsa_queue_store_write_index_screlease(raw_->queue(), index);
      hsa_signal_store_screlease(raw_->queue()->doorbell_signal, static_cast<hsa_signal_value_t>(index - 1));
    }
  }

  void copy(uint64_t index, uint32_t dispatch, uint32_t count) const noexcept {
    hsa_kernel_dispatch_packet_t* const ring = raw_->ring();
    const uint64_t mask = raw_->mask();
    for (uint32_t i = 0; i < count; ++i) {
      const Line& packet = packets_[dispatch + i];
      if constexpr (Kernargs) write_block(dispatch + i);
      Stores::store(ring + ((index + i) & mask), packet.part[0], packet.part[1], packet.part[2],
                    packet.part[3]);
    }
  }

  // Of a batch's packets all but the first and the last differ in the kernarg address alone.
  void build(uint64_t index, uint32_t dispatch, uint32_t count) const noexcept {
    hsa_kernel_dispatch_packet_t* const ring = raw_->ring();
    const uint64_t mask = raw_->mask();
    const auto edge = [&](uint32_t i) {
      const Line& packet = packets_[dispatch + i];
      if constexpr (Kernargs) write_block(dispatch + i);
      Stores::store(ring + ((index + i) & mask), packet.part[0], packet.part[1], packet.part[2],
                    packet.part[3]);
    };
    edge(0);
    if (count == 1) return;
    const Line interior = packets_[dispatch + (count > 2 ? 1 : 0)];
    __m128i address = interior.part[2];  // kernel object, kernarg address
    const __m128i step = _mm_set_epi64x(raw_->kernargs(1) - raw_->kernargs(0), 0);
    for (uint32_t i = 1; i + 1 < count; ++i) {
      if constexpr (Kernargs) write_block(dispatch + i);
      Stores::store(ring + ((index + i) & mask), interior.part[0], interior.part[1], address,
                    interior.part[3]);
      address = _mm_add_epi64(address, step);
    }
    edge(count - 1);
  }

  void write_block(uint32_t i) const noexcept {
    std::byte* const block = raw_->kernargs(i);
    if constexpr (Built) {
      const __m128i arguments = _mm_set_epi64x(
          i, static_cast<long long>(reinterpret_cast<uintptr_t>(raw_->workload().tallies.data())));
      if constexpr (std::is_same_v<Stores, Streaming>) {
        const Line& rest = blocks_[i];
        Stores::store(block, arguments, rest.part[1], rest.part[2], rest.part[3]);
      } else {
        _mm_store_si128(reinterpret_cast<__m128i*>(block), arguments);
      }
    } else if constexpr (std::is_same_v<Stores, Streaming>) {
      const Line& whole = blocks_[i];
      Stores::store(block, whole.part[0], whole.part[1], whole.part[2], whole.part[3]);
    } else {
      _mm_store_si128(reinterpret_cast<__m128i*>(block), blocks_[i].part[0]);
    }
  }

  const std::shared_ptr<RawQueue> raw_;
  const aql::QueueView view_;
  const char* const name_;
  Load load_;
  std::vector<Line> packets_, blocks_;  // of the load, as they have to arrive
};

template <bool Kernargs>
void add(Rows& rows, const std::shared_ptr<RawQueue>& queue, const std::array<const char*, 4>& names) {
  rows.push_back(std::make_unique<Floor<Ordinary, false, Kernargs>>(queue, names[0]));
  rows.push_back(std::make_unique<Floor<Ordinary, true, Kernargs>>(queue, names[1]));
  rows.push_back(std::make_unique<Floor<Streaming, false, Kernargs>>(queue, names[2]));
  rows.push_back(std::make_unique<Floor<Streaming, true, Kernargs>>(queue, names[3]));
}

}  // namespace

Rows floor_rows(std::shared_ptr<RawQueue> queue) {
  Rows rows;
  add<false>(rows, queue,
             {"floor-packets/copied-ordinary", "floor-packets/built-ordinary",
              "floor-packets/copied-streaming", "floor-packets/built-streaming"});
  add<true>(rows, queue,
            {"floor-packets-kernargs/copied-ordinary", "floor-packets-kernargs/built-ordinary",
             "floor-packets-kernargs/copied-streaming", "floor-packets-kernargs/built-streaming"});
  return rows;
}

}  // namespace uptempo::bench
