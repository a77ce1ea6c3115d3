// Streams and the objects they use, destroyed in any order, with work in flight, repeatedly.
// Nothing may be left behind.
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "test/support/catch.hpp"
#include "test/support/holdings.hpp"
#include "test/support/on_device.hpp"
#include "test/support/process_memory.hpp"

using namespace uptempo;
using namespace std::chrono_literals;

namespace {

// The work in flight when the objects are destroyed.
enum class Work { none, some, endless };

class Objects {
 public:
  enum Part : size_t { runtime, program, buffer, streams, stream, other_stream, parts };
  using Order = std::array<Part, parts>;

  explicit Objects(Work work) {
    runtime_.emplace();
    const Agent gpu = runtime_->gpu();
    basics_.emplace(gpu, builtin_kernels::basics());
    probes_.emplace(gpu, builtin_kernels::probes());
    words_.emplace(gpu, 256);
    streams_.emplace(
        gpu, StreamsOptions{.queue = {.drain_timeout = work == Work::endless ? 1ms : 10'000ms}});
    stream_.emplace(*streams_);
    other_stream_.emplace(*streams_);

    std::ranges::fill(words_->span(), 0u);
    const auto spin = probes_->kernel<uint32_t*, uint32_t, uint32_t>("spin");
    const auto gate = probes_->kernel<uint32_t*, uint32_t, uint32_t*>("wait_for_gate");
    const auto fill = basics_->kernel<uint32_t*, uint32_t>("fill");
    stream_->launch(fill, Grid{64}, words_->data(), 7u);
    if (work == Work::some) stream_->launch(spin, Grid{64}, words_->data() + 64, 2000u, 1u);
    if (work == Work::endless)
      stream_->launch(gate, Grid{1}, words_->data() + 128, UINT32_MAX, words_->data() + 160);
    event = stream_->record();
    other_stream_->after(event);
    other_stream_->launch(fill, Grid{64}, words_->data() + 192, 9u);
    other_stream_->record(timed);
    if (work != Work::none) return;
    streams_->synchronize();
    CHECK((*words_)[0] == 7);
    CHECK((*words_)[192] == 9);
  }

  void destroy(Part part) {
    switch (part) {
      case runtime:
        return runtime_.reset();
      case program:
        basics_.reset();
        return probes_.reset();
      case buffer:
        return words_.reset();
      case streams:
        return streams_.reset();
      case stream:
        return stream_.reset();
      case other_stream:
        return other_stream_.reset();
      case parts:
        break;
    }
  }
  // True if kernels and buffers outlive the work in flight, which ends when the queues or the
  // Runtime are destroyed.
  static bool is_allowed(const Order& order, Work work) {
    if (work == Work::none) return true;
    const auto at = [&](Part part) { return std::ranges::find(order, part) - order.begin(); };
    const auto end = std::min(at(runtime), std::max({at(streams), at(stream), at(other_stream)}));
    return at(program) > end && at(buffer) > end;
  }

  // True if the Runtime is destroyed before the queues have finished their work.
  static bool ends_early(const Order& order) {
    const auto at = [&](Part part) { return std::ranges::find(order, part) - order.begin(); };
    return at(runtime) < std::max({at(streams), at(stream), at(other_stream)});
  }

  Event event;
  TimedEvent timed;

 private:
  std::optional<Runtime> runtime_;
  std::optional<Program> basics_, probes_;
  std::optional<PinnedBuffer<uint32_t>> words_;
  std::optional<Streams> streams_;
  std::optional<Stream> stream_, other_stream_;
};

// Queues that lose work leave their timelines behind, which keep reporting the loss (timeline.hpp).
// Other holdings must not grow.
test::Holdings without_timelines(test::Holdings held) {
  held.timelines = 0;
  return held;
}

// All orders in which one of the two streams is destroyed before the other.
void destroy_in_every_order(Work work, Objects::Part first_stream, unsigned expected_orders) {
  Objects::Order order{};
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<Objects::Part>(i);
  std::optional<test::Holdings> before;
  unsigned orders = 0;
  do {
    const auto stream_of_two = std::ranges::find_if(order, [](Objects::Part part) {
      return part == Objects::stream || part == Objects::other_stream;
    });
    if (*stream_of_two != first_stream || !Objects::is_allowed(order, work)) continue;
    ++orders;
    CAPTURE(order);
    Event event;
    TimedEvent timed;
    {
      Objects objects(work);
      event = objects.event;
      timed = objects.timed;
      for (const Objects::Part part : order) objects.destroy(part);
    }
    const test::Holdings after = test::holdings();
    if (!before) before = after;
    CHECK(after.signals == 0);
    CHECK((after.queues == 0 || after.has_rocr));
    const bool loses = work == Work::endless || (work == Work::some && Objects::ends_early(order));
    if (!loses) {
      REQUIRE(after == *before);
      CHECK(event.ready());
      CHECK(timed.ns() != 0);
    } else {
      REQUIRE(without_timelines(after) == without_timelines(*before));
      CHECK(after.timelines <= before->timelines + 2);
      before = after;
    }
    if (work == Work::endless) {
      CHECK_THROWS_AS(event.ready(), Error);
      CHECK_THROWS_AS(timed.ns(), Error);
    }
  } while (std::ranges::next_permutation(order).found);
  CHECK(orders == expected_orders);
}

}  // namespace

TEST_CASE("objects of streams are destroyed in any order, and everything is returned",
          "[device][stream][teardown]") {
  destroy_in_every_order(Work::none, Objects::stream, 360);
}

TEST_CASE(
    "with work in flight, which finishes unless the Runtime is destroyed first, everything is "
    "returned",
    "[device][stream][teardown][in-flight]") {
  destroy_in_every_order(Work::some, Objects::stream, 132);
}

TEST_CASE("with endless work in flight everything is returned",
          "[device][stream][teardown][in-flight]") {
  destroy_in_every_order(Work::endless, Objects::stream, 132);
}

// The waiting stream is destroyed before the one that it waits for.
TEST_CASE("the same holds if the waiting stream is destroyed first",
          "[.long][device][stream][teardown]") {
  destroy_in_every_order(Work::none, Objects::other_stream, 360);
  destroy_in_every_order(Work::some, Objects::other_stream, 132);
  destroy_in_every_order(Work::endless, Objects::other_stream, 132);
}

TEST_CASE("nothing accumulates over a hundred Runtimes whose streams work each time",
          "[device][stream][teardown]") {
  constexpr uint32_t count = 256;
  std::optional<test::Holdings> before;
  uint64_t mapped_before = 0;
  std::vector<Event> events;
  for (uint32_t round = 0; round < 100; ++round) {
    CAPTURE(round);
    {
      Runtime runtime;
      const Agent gpu = runtime.gpu();
      const Program program(gpu, builtin_kernels::basics());
      const auto chain = program.kernel<uint32_t*, uint32_t>("chain_increment");
      PinnedBuffer<uint32_t> values(gpu, count);
      std::ranges::fill(values.span(), round);
      Streams streams(gpu, {.own_queues = 6, .legacy_default = round % 2 == 0});
      std::deque<Stream> all;
      for (int i = 0; i < 5; ++i) all.emplace_back(streams);
      const Signal gate;
      all.front().after(gate);
      TimedEvent begin, end;
      all.front().record(begin);
      Event last = begin;
      uint32_t expected = round;
      for (uint32_t step = 0; step < 40; ++step) {
        Stream& stream = all[step % all.size()];
        stream.after(last);
        stream.launch(chain, Grid{count}.by(64), values.data(), step);
        last = stream.record();
        expected = expected * 3 + step;
      }
      all.back().record(end);
      CHECK_FALSE(last.ready());
      hsa_signal_store_screlease(gate.handle(), 0);
      streams.synchronize();
      CHECK(elapsed(begin, end) > 0ns);
      CHECK(std::ranges::count(values.span(), expected) == count);
      Stream& other = streams.default_stream();
      other.launch(chain, Grid{count}.by(64), values.data(), 1u);
      events.push_back(other.record());
      // otherwise it is in flight when the streams are destroyed
      if (round % 3 != 0) events.back().wait();
      CHECK(test::holdings().queues > 0);
    }
    const test::Holdings after = test::holdings();
    if (round == 0) before = after;
    REQUIRE(after == *before);
    if (round == 20) mapped_before = test::mapped_bytes();
  }
  for (const Event& event : events) CHECK(event.ready());
  // A leak of one buffer per round would be 80 pages of 64 KiB; the C library's allocator grows by
  // less.
  CHECK(test::mapped_bytes() < mapped_before + 2 * test::kVirtualNoise);
}
