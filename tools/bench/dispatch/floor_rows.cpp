// The floors: writes the bytes of a batch into the ring and into kernarg memory by the cheapest
// stores known, then the write index and one doorbell. Headers are not written last, room is not
// checked, nothing is counted. No correct submitter can be cheaper.
//
// The cheapest stores depend on the machine and on the batch length. Each kind is a row, and
// the report keeps the best:
//   copied     from an image in memory      built      from registers
//   ordinary   stores into the cache        streaming  non-temporal stores, four per line
//   wide       the same, one store per line (AVX-512)
// Arguments are 12 bytes stored into the cache, or with `+lines` whole lines past it.
#include <immintrin.h>

#include <atomic>
#include <cstring>
#include <type_traits>

#include <uptempo/aql/amd_abi.hpp>
#include "tools/bench/dispatch/raw_queue.hpp"

namespace uptempo::bench {
namespace {

struct alignas(64) Line {
  __m128i part[4];
};

enum class Kernargs : uint8_t { none, stored, lines };

class Floor : public Row {
 public:
  Floor(std::shared_ptr<RawQueue> queue, const char* name)
      : raw_(std::move(queue)), view_(aql::view(raw_->queue())), name_(name) {}

  std::string_view name() const override { return name_; }

  void prepare(const Load& load) override {
    load_ = load;
    raw_->prepare(load);
    packets_.resize(load.dispatches());
    // Only if they are copied: two images use more of the cache than one.
    if (copies_blocks()) blocks_.resize(load.dispatches());
    for (uint32_t i = 0; i < load.dispatches(); ++i) {
      const hsa_kernel_dispatch_packet_t packet = raw_->packet(load, i);
      std::memcpy(&packets_[i], &packet, sizeof packet);
      if (copies_blocks()) std::memcpy(&blocks_[i], raw_->kernargs(i), sizeof blocks_[i]);
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
      put(index, dispatch, load.batch);
      index += load.batch;
      dispatch += load.batch;
      publish(index);
    }
  }

 protected:
  // Writes `count` packets at `index` of the queue: those from `dispatch` of the load.
  virtual void put(uint64_t index, uint32_t dispatch, uint32_t count) const noexcept = 0;

  virtual bool copies_blocks() const noexcept { return false; }

  // Distance of two packets' kernarg addresses, in the half of part 2 that holds them.
  long long step() const noexcept { return raw_->kernargs(1) - raw_->kernargs(0); }

  // A local object of each put(): members of a longer-lived object would be reloaded after every
  // store.
  template <Kernargs kind>
  class Blocks {
   public:
    explicit Blocks(const Floor& floor) noexcept
        : first_(floor.raw_->kernargs(0)),
          step_(floor.step()),
          tallies_(reinterpret_cast<long long>(floor.raw_->workload().tallies.data())),
          images_(floor.blocks_.data()) {}

    void put(uint32_t i) const noexcept {
      auto* const block = reinterpret_cast<__m128i*>(first_ + i * step_);
      if constexpr (kind == Kernargs::stored) {
        std::memcpy(block, &tallies_, sizeof tallies_);
        std::memcpy(reinterpret_cast<std::byte*>(block) + sizeof tallies_, &i, sizeof i);
      } else if constexpr (kind == Kernargs::lines) {
        for (int part = 0; part < 4; ++part) _mm_stream_si128(block + part, images_[i].part[part]);
      }
    }

   private:
    std::byte* first_;
    long long step_, tallies_;
    const Line* images_;
  };

  const std::shared_ptr<RawQueue> raw_;
  std::vector<Line> packets_, blocks_;  // expected packets and kernarg blocks of the load

 private:
  void publish(uint64_t index) const noexcept {
    if (view_.write_index != nullptr && view_.doorbell != nullptr) {
      std::atomic_ref(*view_.write_index).store(index, std::memory_order_release);
      std::atomic_ref(*view_.doorbell).store(index - 1, std::memory_order_release);
    } else {
      hsa_queue_store_write_index_screlease(raw_->queue(), index);
      hsa_signal_store_screlease(raw_->queue()->doorbell_signal,
                                 static_cast<hsa_signal_value_t>(index - 1));
    }
  }

  const aql::QueueView view_;
  const char* const name_;
  Load load_;
};

template <bool streaming>
void put_line(void* line, __m128i a, __m128i b, __m128i c, __m128i d) noexcept {
  auto* const to = static_cast<__m128i*>(line);
  if constexpr (streaming) {
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
  } else {
    _mm_store_si128(to, a);
    _mm_store_si128(to + 1, b);
    _mm_store_si128(to + 2, c);
    _mm_store_si128(to + 3, d);
  }
}

template <bool streaming, bool built, Kernargs arguments>
class Narrow final : public Floor {
 public:
  using Floor::Floor;

 private:
  bool copies_blocks() const noexcept override { return arguments == Kernargs::lines; }
  void put(uint64_t index, uint32_t dispatch, uint32_t count) const noexcept override {
    hsa_kernel_dispatch_packet_t* const ring = raw_->ring();
    const uint64_t mask = raw_->mask();
    const Floor::Blocks<arguments> blocks(*this);
    const auto copy = [=, packets = packets_.data()](uint32_t i) {
      const Line& packet = packets[dispatch + i];
      blocks.put(dispatch + i);
      put_line<streaming>(ring + ((index + i) & mask), packet.part[0], packet.part[1],
                          packet.part[2], packet.part[3]);
    };
    if constexpr (!built) {
      for (uint32_t i = 0; i < count; ++i) copy(i);
    } else {
      // All packets of a batch except the first and the last differ in the kernarg address alone.
      copy(0);
      if (count > 2) {
        const Line interior = packets_[dispatch + 1];
        __m128i address = interior.part[2];  // kernel object, kernarg address
        const __m128i further = _mm_set_epi64x(step(), 0);
        for (uint32_t i = 1; i + 1 < count; ++i) {
          blocks.put(dispatch + i);
          put_line<streaming>(ring + ((index + i) & mask), interior.part[0], interior.part[1],
                              address, interior.part[3]);
          address = _mm_add_epi64(address, further);
        }
      }
      if (count > 1) copy(count - 1);
    }
    if constexpr (streaming || arguments == Kernargs::lines) _mm_sfence();
  }
};

bool has_wide_stores() noexcept { return __builtin_cpu_supports("avx512f") != 0; }

template <bool built, Kernargs arguments>
class Wide final : public Floor {
 public:
  using Floor::Floor;

 private:
  [[gnu::target("avx512f")]] void put(uint64_t index, uint32_t dispatch,
                                      uint32_t count) const noexcept override {
    hsa_kernel_dispatch_packet_t* const ring = raw_->ring();
    const uint64_t mask = raw_->mask();
    const __m512i further = _mm512_set_epi64(0, 0, step(), 0, 0, 0, 0, 0);
    __m512i packet = _mm512_load_si512(&packets_[dispatch + (built && count > 2 ? 1 : 0)]);
    const Floor::Blocks<arguments> blocks(*this);
    const Line* const packets = packets_.data();
    for (uint32_t i = 0; i < count; ++i) {
      blocks.put(dispatch + i);
      auto* const slot = reinterpret_cast<__m512i*>(ring + ((index + i) & mask));
      if (!built || i == 0 || i + 1 == count) {
        _mm512_stream_si512(slot, _mm512_load_si512(&packets[dispatch + i]));
      } else {
        _mm512_stream_si512(slot, packet);
        packet = _mm512_add_epi64(packet, further);
      }
    }
    _mm_sfence();
  }
};

}  // namespace

Rows floor_rows(std::shared_ptr<RawQueue> queue) {
  Rows rows;
  const auto add = [&]<class Variant>(std::type_identity<Variant>, const char* name) {
    rows.push_back(std::make_unique<Variant>(queue, name));
  };
  constexpr auto none = Kernargs::none, stored = Kernargs::stored, lines = Kernargs::lines;
  using std::type_identity;
  add(type_identity<Narrow<false, false, none>>{}, "floor-packets/copied-ordinary");
  add(type_identity<Narrow<false, true, none>>{}, "floor-packets/built-ordinary");
  add(type_identity<Narrow<true, false, none>>{}, "floor-packets/copied-streaming");
  add(type_identity<Narrow<true, true, none>>{}, "floor-packets/built-streaming");
  add(type_identity<Narrow<false, false, stored>>{}, "floor-packets-kernargs/copied-ordinary");
  add(type_identity<Narrow<false, true, stored>>{}, "floor-packets-kernargs/built-ordinary");
  add(type_identity<Narrow<true, false, stored>>{}, "floor-packets-kernargs/copied-streaming");
  add(type_identity<Narrow<true, true, stored>>{}, "floor-packets-kernargs/built-streaming");
  add(type_identity<Narrow<true, true, lines>>{}, "floor-packets-kernargs/built-streaming+lines");
  if (!has_wide_stores()) return rows;
  add(type_identity<Wide<false, none>>{}, "floor-packets/copied-wide");
  add(type_identity<Wide<true, none>>{}, "floor-packets/built-wide");
  add(type_identity<Wide<false, stored>>{}, "floor-packets-kernargs/copied-wide");
  add(type_identity<Wide<true, stored>>{}, "floor-packets-kernargs/built-wide");
  return rows;
}

}  // namespace uptempo::bench
