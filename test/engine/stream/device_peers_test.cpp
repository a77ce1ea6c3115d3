// Streams of two GPUs that wait for each other's events.
#include <atomic>
#include <deque>
#include <optional>
#include <random>
#include <string>

#include <uptempo/runtime/counters.hpp>
#include "test/engine/peers.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using namespace uptempo::test;

namespace {

constexpr uint32_t kItems = 1024;
constexpr Grid kGrid = Grid{kItems}.by(64);
constexpr size_t kRooms = 16, kWords = kRooms * kItems;

// Streams of both GPUs, and kernels that keep a stream busy until the gate opens.
struct PeerStreams : OnPeers {
  explicit PeerStreams(const StreamsOptions& options = {})
      : streams{Streams{gpus[0], options}, Streams{gpus[1], options}} {
    gate[0] = 0;
  }
  ~PeerStreams() { open(); }

  void keep_busy(size_t which, Stream& stream) {
    stream.launch(programs[which].wait_for_gate, Grid{1}, gate.data(), 1u << 30,
                  outcomes.data() + kept_busy++);
  }
  void open() { std::atomic_ref(gate[0]).store(1, std::memory_order_release); }
  // Memory for kItems that no launch uses yet.
  uint32_t* room(size_t which) { return words[which].data() + rooms++ % kRooms * kItems; }
  // True if the stream's next launch acquires at system scope.
  bool next_acquires_system(size_t which, Stream& stream) {
    const uint64_t before = Counters::now().system_acquires;
    stream.launch(programs[which].fill, kGrid, room(which), 1u);
    return Counters::now().system_acquires != before;
  }

  PinnedBuffer<uint32_t> gate{gpus, 1}, outcomes{gpus, 64};
  size_t kept_busy = 0, rooms = 0;
  std::array<DeviceBuffer<uint32_t>, 2> words{DeviceBuffer<uint32_t>{gpus[0], kWords},
                                              DeviceBuffer<uint32_t>{gpus[1], kWords}};
  std::array<Streams, 2> streams;
};

// A way in which a stream of the first GPU comes after an event of the second one.
enum class Way : uint8_t {
  directly,
  through_record,  // of another stream of the first GPU, without a launch between
  through_two_records,
  through_timed_record,
  through_other_wait,  // a record of a stream that has since waited for work of its own GPU
  from_idle_stream,    // of the second GPU, whose work the host has waited for
  through_launch,      // of another stream of the first GPU, which acquires
  through_own_gpu      // the event is of the first GPU
};

// The wait for the later one of two events of a hardware queue stands for both.
void follow_two_events_of_one_queue() {
  for (const bool later_first : {false, true}) {
    CAPTURE(later_first);
    PeerStreams all({.hardware_queues = 2});
    // Two streams share a hardware queue; `busy` gets the other one.
    Stream received(all.streams[0]), busy(all.streams[0]), beside(all.streams[0]);
    Stream other(all.streams[1]);
    all.keep_busy(0, busy);
    CHECK_FALSE(all.next_acquires_system(0, busy));
    all.keep_busy(1, other);
    all.keep_busy(0, received);
    received.after(other.record());
    const Event of_the_peer = received.record();
    beside.launch(all.programs[0].fill, kGrid, all.room(0), 2u);
    const Event later = beside.record();
    busy.after(later_first ? later : of_the_peer);
    busy.after(later_first ? of_the_peer : later);
    CHECK(all.next_acquires_system(0, busy));
    all.open();
    for (Streams& each : all.streams) each.synchronize();
  }
}

}  // namespace

TEST_CASE(
    "a launch that follows another GPU's work acquires at system scope, however it learns of it",
    "[peers][event]") {
  for (const uint32_t queues : {1u, 4u}) {
    for (const bool is_over : {false, true}) {
      for (const Way way : {Way::directly, Way::through_record, Way::through_two_records,
                            Way::through_timed_record, Way::through_other_wait,
                            Way::from_idle_stream, Way::through_launch, Way::through_own_gpu}) {
        CAPTURE(queues, is_over, static_cast<int>(way));
        // The marker of `other` would follow `busy`, which waits for the gate.
        if (is_over && queues == 1 && way == Way::through_own_gpu) continue;
        if (!is_over && way == Way::from_idle_stream) continue;
        PeerStreams all({.hardware_queues = queues});
        Stream busy(all.streams[0]), between(all.streams[0]), second(all.streams[0]);
        const size_t far = way == Way::through_own_gpu ? 0 : 1;
        Stream other(all.streams[far]);
        all.keep_busy(0, busy);
        CHECK_FALSE(all.next_acquires_system(0, busy));
        if (!is_over) all.keep_busy(far, other);
        other.launch(all.programs[far].fill, kGrid, all.room(far), 2u);
        Event event = other.record();
        if (is_over) event.wait();
        TimedEvent timed;
        switch (way) {
          case Way::directly:
          case Way::through_own_gpu:
            break;
          case Way::from_idle_stream:
            other.synchronize();
            event = other.record();
            break;
          case Way::through_other_wait:
            between.after(event);
            second.launch(all.programs[0].fill, kGrid, all.room(0), 2u);
            between.after(second.record());
            event = between.record();
            break;
          case Way::through_two_records:
            second.after(event);
            event = second.record();
            [[fallthrough]];
          case Way::through_record:
            between.after(event);
            event = between.record();
            break;
          case Way::through_timed_record:
            between.after(event);
            between.record(timed);
            event = timed;
            break;
          case Way::through_launch:
            between.after(event);
            CHECK(all.next_acquires_system(0, between));
            event = between.record();
            break;
        }
        busy.after(event);
        // An acquire covers the whole agent, so the second launch needs none.
        const bool covered = way == Way::through_launch || way == Way::through_own_gpu;
        CHECK(all.next_acquires_system(0, busy) == !covered);
        CHECK_FALSE(all.next_acquires_system(0, busy));
        all.open();
        for (Streams& each : all.streams) each.synchronize();
      }
    }
  }
  follow_two_events_of_one_queue();
}

TEST_CASE("an event that was never recorded covers no writes", "[peers][event]") {
  PeerStreams all;
  Stream busy(all.streams[0]);
  all.keep_busy(0, busy);
  busy.after(Event());
  CHECK_FALSE(all.next_acquires_system(0, busy));
}

TEST_CASE("the legacy default stream acquires what blocking streams have received from another GPU",
          "[peers][event][default]") {
  PeerStreams all({.hardware_queues = 1, .legacy_default = true});
  Stream first(all.streams[0]), second(all.streams[0]), other(all.streams[1]);
  Stream& last = all.streams[0].default_stream();
  all.keep_busy(0, last);
  const DeviceBuffer<uint32_t> remote{all.gpus, kItems};
  // The copy engine's writes and the event's are acquired by no launch of the blocking streams.
  first.copy(remote, CopySource::device(all.room(0), kItems * sizeof(uint32_t)), CopyPath::engine);
  second.launch(all.programs[0].fill, kGrid, all.room(0), 3u);
  CHECK(all.next_acquires_system(0, last));
  all.open();
  for (Streams& each : all.streams) each.synchronize();
}

TEST_CASE("the legacy default stream acquires at agent scope behind kernels of its own GPU",
          "[peers][event][default]") {
  PeerStreams all({.hardware_queues = 1, .legacy_default = true});
  Stream blocking(all.streams[0]);
  Stream& last = all.streams[0].default_stream();
  all.keep_busy(0, blocking);
  all.next_acquires_system(0, last);
  for (int round = 0; round < 3; ++round) {
    CHECK_FALSE(all.next_acquires_system(0, blocking));
    CHECK_FALSE(all.next_acquires_system(0, last));
  }
  all.open();
  all.streams[0].synchronize();
}

TEST_CASE("host writes before a wait for an event are acquired by the launch after it",
          "[peers][event]") {
  PeerStreams all({.hardware_queues = 2});
  Stream busy(all.streams[0]), stream(all.streams[0]);
  stream.launch(all.programs[0].fill, kGrid, all.room(0), 3u);
  stream.record().wait();  // the host may now write coarse-grained memory
  all.keep_busy(0, busy);
  stream.after(busy.record());
  CHECK(all.next_acquires_system(0, stream));
}

namespace {

// A random program over streams of both GPUs: kernels and copies on buffers of both, each in the
// order that events give, some of which pass through streams that only wait and record. The host
// computes the same, one step after another.
class RandomPeers : PeerStreams {
 public:
  RandomPeers(uint64_t seed, const StreamsOptions& options) : PeerStreams(options), random_(seed) {
    for (size_t i = 0; i < kStreams; ++i)
      workers_.push_back({.which = i % 2, .stream = std::make_unique<Stream>(streams[i % 2])});
    for (size_t i = 0; i < kBuffers; ++i) {
      const std::array<Agent, 2> owner_first{gpus[i % 2], gpus[1 - i % 2]};
      buffers_.push_back({.memory = DeviceBuffer<uint32_t>{owner_first, kItems}});
      for (uint32_t& word : buffers_.back().expected) word = static_cast<uint32_t>(random_());
      workers_[0].stream->copy(buffers_.back().memory,
                               std::span<const uint32_t>(buffers_.back().expected));
    }
    workers_[0].stream->synchronize();
  }

  void run(unsigned steps) {
    for (unsigned step = 0; step < steps; ++step) {
      Worker& worker = any(workers_);
      Buffer& out = any(buffers_);
      Buffer &a = any(buffers_), &b = any(buffers_);
      if (&a == &out || &b == &out) continue;  // the kernel reads elements of other work-items
      const auto addend = static_cast<uint32_t>(step);
      switch (random_() % 8) {
        case 0:
          check(worker, out);
          break;
        case 1:
          fill(worker, out, addend);
          break;
        case 2:
        case 3:
          copy(worker, out, a);
          break;
        default:
          combine(worker, out, a, b, addend);
      }
    }
    for (Buffer& buffer : buffers_) check(workers_[0], buffer);
  }

 private:
  static constexpr size_t kStreams = 6, kBuffers = 6;
  struct Worker {
    size_t which;
    std::unique_ptr<Stream> stream;
  };
  struct Use {
    Worker* worker;
    Event event;
  };
  struct Buffer {
    DeviceBuffer<uint32_t> memory;
    std::vector<uint32_t> expected = std::vector<uint32_t>(kItems);
    std::optional<Use> writer{};
    std::vector<Use> readers{};
  };

  template <class T>
  T& any(std::deque<T>& all) {
    return all[random_() % all.size()];
  }
  void follow(Worker& worker, const Use& use) {
    if (use.worker == &worker) return;
    Event event = use.event;
    for (uint64_t hops = random_() % 3; hops != 0; --hops) {
      Stream& between = *any(workers_).stream;
      between.after(event);
      event = between.record();
    }
    worker.stream->after(event);
  }
  void before_reading(Worker& worker, Buffer& buffer) {
    if (buffer.writer) follow(worker, *buffer.writer);
  }
  void before_writing(Worker& worker, Buffer& buffer) {
    before_reading(worker, buffer);
    for (const Use& reader : buffer.readers) follow(worker, reader);
  }
  void wrote(Worker& worker, Buffer& buffer) {
    buffer.writer = Use{&worker, worker.stream->record()};
    buffer.readers.clear();
  }
  void read(Worker& worker, Buffer& buffer) {
    buffer.readers.push_back({&worker, worker.stream->record()});
  }

  void combine(Worker& worker, Buffer& out, Buffer& a, Buffer& b, uint32_t addend) {
    before_writing(worker, out);
    before_reading(worker, a);
    before_reading(worker, b);
    worker.stream->launch(programs[worker.which].combine, kGrid, out.memory.data(), a.memory.data(),
                          b.memory.data(), addend);
    wrote(worker, out);
    read(worker, a);
    read(worker, b);
    combine_on_host(out.expected, a.expected, b.expected, addend);
  }
  void fill(Worker& worker, Buffer& out, uint32_t value) {
    before_writing(worker, out);
    worker.stream->fill(out.memory, value);
    wrote(worker, out);
    std::ranges::fill(out.expected, value);
  }
  void copy(Worker& worker, Buffer& out, Buffer& from) {
    before_writing(worker, out);
    before_reading(worker, from);
    const CopyPath path = random_() % 2 == 0 ? CopyPath::engine : CopyPath::kernel;
    CHECK(worker.stream->copy(out.memory, from.memory, path) == path);
    wrote(worker, out);
    read(worker, from);
    out.expected = from.expected;
  }
  void check(Worker& worker, Buffer& buffer) {
    before_reading(worker, buffer);
    std::vector<uint32_t> found(kItems);
    worker.stream->copy(std::span(found), buffer.memory);
    worker.stream->synchronize();
    REQUIRE(found == buffer.expected);
  }

  std::mt19937_64 random_;
  std::deque<Worker> workers_;
  std::deque<Buffer> buffers_;
};

}  // namespace

TEST_CASE("random programs over streams of two GPUs compute what the host computes",
          "[peers][order]") {
  for (const uint32_t queues : {1u, 3u})
    for (const uint64_t seed : {1u, 2u, 3u}) {
      CAPTURE(queues, seed);
      RandomPeers(seed, {.hardware_queues = queues}).run(200);
    }
}

TEST_CASE("streams of two GPUs with few signals wait for each other without end",
          "[peers][order]") {
  RandomPeers(4, {.hardware_queues = 2, .queue = {.publications = 2}}).run(150);
}

TEST_CASE("each launch of one GPU is between two of the other", "[peers][order]") {
  PeerStreams all;
  const DeviceBuffer<uint32_t> words{all.gpus, kItems};
  std::array<Stream*, 2> reserved{};
  Stream first(all.streams[0]), second(all.streams[1]);
  reserved = {&first, &second};
  first.launch(all.programs[0].iota, kGrid, words.data(), 5u, 3u);
  constexpr uint32_t kHops = 60;
  for (uint32_t hop = 0; hop < kHops; ++hop) {
    Stream& next = *reserved[(hop + 1) % 2];
    next.after(reserved[hop % 2]->record());
    next.launch(all.programs[(hop + 1) % 2].increment, kGrid, words.data(), hop);
  }
  std::vector<uint32_t> found(kItems);
  second.after(reserved[kHops % 2]->record());
  second.copy(std::span(found), words);
  second.synchronize();
  for (uint32_t i = 0; i < kItems; ++i) {
    uint32_t expected = 5 + 3 * i;
    for (uint32_t hop = 0; hop < kHops; ++hop) expected = expected * 3 + hop;
    REQUIRE(found[i] == expected);
  }
}

TEST_CASE("timed events of two GPUs are in one clock", "[peers][event]") {
  PeerStreams all;
  Stream first(all.streams[0]), second(all.streams[1]);
  std::deque<TimedEvent> times;
  for (uint32_t hop = 0; hop < 10; ++hop) {
    const size_t which = hop % 2;
    Stream &now = which == 0 ? first : second, &next = which == 0 ? second : first;
    now.launch(all.programs[which].fill, kGrid, all.room(which), hop);
    now.record(times.emplace_back());
    next.after(times.back());
  }
  first.synchronize();
  second.synchronize();
  for (size_t i = 1; i < times.size(); ++i) CHECK(elapsed(times[i - 1], times[i]).count() >= 0);
}
