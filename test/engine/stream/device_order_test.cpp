// Order proven by data: random programs of launches over several streams. Each launch reads what
// others wrote and overwrites what others read, with no more events than necessary. The result is
// compared with the same program on the host, one launch after another. Most useful with late steps
// (uptempo-vgpu --delay), stale caches (--incoherent) and judged accesses (--check fences).
#include <uptempo/kernels/probes.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <random>

#include "test/support/catch.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;

namespace {

struct Plan {
  uint64_t seed = 1;
  unsigned streams = 6;
  unsigned launches = 300;
  bool gates = true;  // streams also wait for signals that the host sets
  StreamsOptions options{};
};

class RandomProgram : test::OnDevice {
 public:
  explicit RandomProgram(const Plan& plan)
      : plan_(plan), random_(plan.seed), streams_(gpu, plan.options) {
    for (unsigned i = 0; i < plan.streams; ++i) add_stream();
    for (unsigned i = 0; i < kBuffers; ++i) {
      buffers_.emplace_back(gpu, i % 2 == 0);
      write_by_host(buffers_.back());
    }
  }

  void run() {
    for (unsigned done = 0; done < plan_.launches;) {
      switch (random_() % 32) {
        case 0:
          write_by_host(any_buffer());
          break;
        case 1:
          check_by_host(any_buffer());
          break;
        case 2:
          replace_stream();
          break;
        case 3:
          gate(any_stream());
          break;
        case 4:
          open_gates();
          any_stream()->stream->synchronize();
          break;
        default:
          launch(any_stream());
          ++done;
      }
    }
    open_gates();
    streams_.synchronize();
    for (Buffer& buffer : buffers_) compare(buffer);
  }

 private:
  static constexpr unsigned kBuffers = 7;
  static constexpr uint32_t kElements = 1024;

  struct Worker {
    Stream* stream;
    std::unique_ptr<Stream> own{};  // null: the default stream
    bool blocking = true;
    std::optional<Event> end{};  // set when the stream is destroyed
  };
  using Work = std::shared_ptr<Worker>;
  // One use of a buffer by a stream.
  struct Use {
    Work worker;
    std::optional<Event> event;  // empty: recorded when another stream needs it
  };
  struct Buffer {
    Buffer(const Agent& gpu, bool in_host_memory) {
      if (in_host_memory) {
        pinned.emplace(gpu, kElements);
      } else {
        device.emplace(gpu, kElements);
      }
    }
    uint32_t* data() const { return pinned ? pinned->data() : device->data(); }

    std::optional<PinnedBuffer<uint32_t>> pinned;
    std::optional<DeviceBuffer<uint32_t>> device;
    std::vector<uint32_t> expected = std::vector<uint32_t>(kElements);
    std::optional<Use> write;  // the last one
    std::vector<Use> reads;    // since the last write
  };

  bool is_legacy() const { return plan_.options.legacy_default; }

  void add_stream() {
    const bool blocking = random_() % 4 != 0;
    if (workers_.empty()) {
      workers_.push_back(std::make_shared<Worker>(Worker{.stream = &streams_.default_stream()}));
    } else {
      auto own = std::make_unique<Stream>(streams_, StreamOptions{.blocking = blocking});
      Stream* const stream = own.get();
      workers_.push_back(std::make_shared<Worker>(
          Worker{.stream = stream, .own = std::move(own), .blocking = blocking}));
    }
  }
  const Work& any_stream() { return workers_[random_() % workers_.size()]; }
  Buffer& any_buffer() { return buffers_[random_() % kBuffers]; }

  static Event event_of(const Use& use) {
    if (use.event) return *use.event;
    return use.worker->end ? *use.worker->end : use.worker->stream->record();
  }
  // The default stream is ordered against blocking streams without events.
  bool is_ordered(const Work& one, const Work& other) const {
    return one == other || (is_legacy() && (one->own == nullptr || other->own == nullptr) &&
                            one->blocking && other->blocking);
  }
  void follow(const Work& worker, const Use& use) {
    if (use.worker->end || !is_ordered(worker, use.worker)) worker->stream->after(event_of(use));
  }
  Use use_by(const Work& worker) {
    return {worker, random_() % 2 == 0 ? std::optional(worker->stream->record()) : std::nullopt};
  }

  void launch(const Work& worker) {
    std::array<Buffer*, 3> chosen{};
    for (size_t i = 0; i < 3;) {
      chosen[i] = &any_buffer();
      if (std::find(chosen.begin(), chosen.begin() + i, chosen[i]) == chosen.begin() + i) ++i;
    }
    const auto& [out, a, b] = chosen;
    for (const Buffer* buffer : chosen)
      if (buffer->write) follow(worker, *buffer->write);
    for (const Use& read : out->reads) follow(worker, read);

    const uint32_t count = kElements >> (random_() % 5);
    const auto addend = static_cast<uint32_t>(random_());
    worker->stream->launch(combine_, Grid{count}.by(64), out->data(), a->data(), b->data(), addend);
    for (uint32_t i = 0; i < count; ++i)
      out->expected[i] =
          out->expected[i] * 7 + a->expected[count - 1 - i] * 3 + b->expected[i] * 5 + addend;
    const Use use = use_by(worker);
    out->write = use;
    out->reads.clear();
    a->reads.push_back(use);
    b->reads.push_back(use);
  }

  void gate(const Work& worker) {
    if (!plan_.gates || gates_.size() - open_gates_ == 2) return;
    worker->stream->after(gates_.emplace_back());
  }
  void open_gates() {
    for (; open_gates_ < gates_.size(); ++open_gates_)
      hsa_signal_store_screlease(gates_[open_gates_].handle(), 0);
  }

  void wait_for_users(Buffer& buffer) {
    open_gates();
    if (buffer.write) event_of(*buffer.write).wait();
    for (const Use& read : buffer.reads) event_of(read).wait();
    buffer.write.reset();
    buffer.reads.clear();
  }
  void write_by_host(Buffer& buffer) {
    wait_for_users(buffer);
    for (uint32_t& value : buffer.expected) value = static_cast<uint32_t>(random_());
    if (buffer.pinned) {
      std::ranges::copy(buffer.expected, buffer.pinned->begin());
    } else {
      copier_.copy(*buffer.device, buffer.expected);
      for (const Work& worker : workers_) worker->stream->host_wrote();
    }
  }
  void check_by_host(Buffer& buffer) {
    open_gates();
    if (buffer.write) event_of(*buffer.write).wait();
    compare(buffer);
  }
  void compare(const Buffer& buffer) {
    if (buffer.pinned) {
      REQUIRE(std::ranges::equal(*buffer.pinned, buffer.expected));
    } else {
      REQUIRE(test::download(copier_, *buffer.device) == buffer.expected);
    }
  }

  void replace_stream() {
    Work& worker = workers_[1 + random_() % (workers_.size() - 1)];
    worker->end = worker->stream->record();
    worker->own.reset();
    worker.swap(workers_.back());
    workers_.pop_back();
    add_stream();
  }

  const Plan plan_;
  std::mt19937_64 random_;
  Program probes_{gpu, builtin_kernels::probes()};
  Kernel<uint32_t*, const uint32_t*, const uint32_t*, uint32_t> combine_ =
      probes_.kernel<uint32_t*, const uint32_t*, const uint32_t*, uint32_t>("combine");
  Copier copier_{gpu};
  std::deque<Buffer> buffers_;
  std::deque<Signal> gates_;
  size_t open_gates_ = 0;  // the first ones
  Streams streams_;
  std::vector<Work> workers_;
};

}  // namespace

TEST_CASE("programs over several streams compute what the host computes, launch by launch",
          "[device][stream][order]") {
  for (const uint32_t queues : {1u, 2u, 4u})
    for (const bool legacy : {false, true})
      for (const uint64_t seed : {1u, 2u, 3u}) {
        CAPTURE(queues, legacy, seed);
        RandomProgram(
            {.seed = seed,
             .options = {.hardware_queues = queues, .own_queues = 12, .legacy_default = legacy}})
            .run();
      }
}

TEST_CASE("programs are right with a permanent shortage of signals, kernarg memory and slots",
          "[device][stream][order]") {
  for (const uint64_t seed : {11u, 12u, 13u}) {
    CAPTURE(seed);
    RandomProgram(
        {.seed = seed,
         // a launch that runs short waits for the device, which must not wait for the host
         .gates = false,
         .options = {.hardware_queues = 2,
                     .queue = {.packets = 64,
                               .publications = 4,
                               .kernarg_bytes = 4096,
                               .kernarg_slab_bytes = 512},
                     .epoch_packets = 8}})
        .run();
  }
}
