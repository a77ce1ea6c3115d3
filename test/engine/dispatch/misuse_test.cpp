// Queues that are destroyed before their batches and recordings, against the packet processor
// double. Later use throws an Error that names the destroyed object, and touches none of its
// memory.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <uptempo/aql/packet.hpp>
#include <uptempo/recording/recording.hpp>
#include <uptempo/runtime/error.hpp>
#include "test/engine/double_device.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

struct alignas(64) Block {
  std::byte bytes[64];
};

// Every call that adds packets to a batch, or submits it.
std::map<std::string, std::function<void()>> uses_of(BatchSubmitter& batch,
                                                     Prepared<uint32_t>& prepared, Block& block) {
  static const auto kernel = number_kernel();
  return {
      {"dispatch", [&] { batch.dispatch(kernel, Grid{1}, 1u); }},
      {"dispatch of a new kernel", [&] { batch.dispatch(number_kernel(0x7000), Grid{3}, 1u); }},
      {"try_dispatch", [&] { (void)batch.try_dispatch(kernel, Grid{1}, 1u); }},
      {"dispatch_at", [&] { batch.dispatch_at(std::span(block.bytes), kernel, Grid{1}, 1u); }},
      {"raw", [&] { batch.raw(aql::to_packet(aql::BarrierAnd{})); }},
      {"prepare", [&] { (void)batch.prepare(number_kernel(0x8000), Grid{2}); }},
      {"Prepared::dispatch", [&] { prepared.dispatch(7u); }},
      {"Prepared::dispatch_each",
       [&] { prepared.dispatch_each(3, [](uint32_t i) noexcept { return std::tuple(i); }); }},
      {"submit", [&] { (void)batch.submit(); }},
      {"submit until a deadline", [&] { (void)batch.submit(soon()); }},
      {"submit until a deadline that has passed", [&] { (void)batch.submit(Deadline::now()); }},
      {"try_submit", [&] { (void)batch.try_submit(); }},
  };
}

void check_refuses(BatchSubmitter& batch, Prepared<uint32_t>& prepared) {
  Block block;
  for (const auto& [name, use] : uses_of(batch, prepared, block)) {
    CAPTURE(name);
    for (int round = 0; round < 2; ++round) {
      const std::string error = error_of<Error>(use);
      CHECK(contains(error, "its Queue no longer exists: it was destroyed"));
      CHECK(contains(error, "make a new batch over another Queue"));
    }
  }
}

}  // namespace

TEST_CASE("a batch whose queue was destroyed refuses every use that could reach the queue",
          "[misuse]") {
  const uint32_t unsubmitted = GENERATE(0u, 1u, 2u, 40u, 70u);  // 70: more than the ring holds
  CAPTURE(unsubmitted);
  DoubleDevice device;
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {});
  Prepared<uint32_t> prepared = batch.prepare(kernel, Grid{1});
  batch.dispatch(kernel, Grid{1}, 0u);
  const Completion before = batch.submit();
  REQUIRE(before.wait(soon(), kActiveWait));
  for (uint32_t i = 0; i < unsubmitted; ++i) batch.dispatch(kernel, Grid{1}, i);
  device.destroy_queue();
  check_refuses(batch, prepared);
  CHECK(batch.size() == 0);
  CHECK(before.ready());
  CHECK(device.processor().completed().size() == 1);
}

TEST_CASE("each batch refuses use after its queue is destroyed, whichever batch holds the ring",
          "[misuse]") {
  DoubleDevice device;
  const auto kernel = number_kernel();
  BatchSubmitter first(device.queue(), {}), second(device.queue(), {});
  auto destroyed = std::make_unique<BatchSubmitter>(device.queue(), BatchOptions{});
  Prepared<uint32_t> of_first = first.prepare(kernel, Grid{1}),
                     of_second = second.prepare(kernel, Grid{1});
  for (uint32_t i = 0; i < 5; ++i) {
    first.dispatch(kernel, Grid{1}, i);
    destroyed->dispatch(kernel, Grid{1}, i);
    second.dispatch(kernel, Grid{1}, i);
  }
  destroyed.reset();
  device.destroy_queue();
  check_refuses(first, of_first);
  check_refuses(second, of_second);
}

TEST_CASE("a batch whose queue was destroyed may be queried, cleared and destroyed", "[misuse]") {
  DoubleDevice device;
  const auto kernel = number_kernel();
  std::optional<BatchSubmitter> batch;
  batch.emplace(device.queue(), BatchOptions{});
  for (uint32_t i = 0; i < 3; ++i) batch->dispatch(kernel, Grid{1}, i).touches_nothing();
  batch->submit().wait(kActiveWait);
  const std::string plan = batch->explain();
  CommandRef last = batch->dispatch(kernel, Grid{1}, 4u);
  device.destroy_queue();
  CHECK(contains(error_of<Error>([&] { last.touches_nothing(); }), "no longer the last packet"));
  CHECK(batch->explain() == plan);
  CHECK(batch->plan().size() == 3);
  CHECK(batch->size() == 0);
  batch->clear();
  CHECK(contains(error_of<Error>([&] { batch->dispatch(kernel, Grid{1}, 5u); }),
                 "its Queue no longer exists"));
  batch.reset();
}

TEST_CASE("packets, prepared kernels and CommandRefs follow a batch that is moved", "[misuse]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({}, [&](uint32_t number) { ran.push_back(number); });
  const auto kernel = number_kernel();
  static_assert(std::is_nothrow_move_constructible_v<BatchSubmitter>);
  static_assert(std::is_nothrow_move_assignable_v<BatchSubmitter>);
  BatchSubmitter batch(device.queue(), {});
  Prepared<uint32_t> prepared = batch.prepare(kernel, Grid{1});
  prepared.dispatch(1u);
  CommandRef ref = batch.dispatch(kernel, Grid{1}, 2u);
  BatchSubmitter moved{std::move(batch)};
  ref.touches_nothing();
  prepared.dispatch(3u);
  prepared.dispatch_each(5, [](uint32_t i) noexcept { return std::tuple(4 + i); });
  CHECK(moved.size() == 8);
  CHECK(moved.submit().wait(soon(), kActiveWait));
  CHECK(ran == std::vector<uint32_t>{1, 2, 3, 4, 5, 6, 7, 8});

  // NOLINTBEGIN(bugprone-use-after-move): the subject
  Block block;
  Prepared<uint32_t> of_moved = moved.prepare(kernel, Grid{2});
  for (const auto& [name, use] : uses_of(batch, of_moved, block)) {
    if (name.starts_with("Prepared")) continue;
    CAPTURE(name);
    CHECK(contains(error_of<Error>(use), "this one was moved from"));
  }
  CHECK(contains(error_of<Error>([&] { (void)batch.plan(); }), "this one was moved from"));
  CHECK(contains(error_of<Error>([&] { (void)batch.explain(); }), "this one was moved from"));
  CHECK(batch.size() == 0);
  batch.clear();
  // NOLINTEND(bugprone-use-after-move)

  // Assignment drops what the target held, and repairs a batch that was moved from.
  moved.dispatch(kernel, Grid{1}, 9u);
  moved = BatchSubmitter(device.queue(), {});
  moved.dispatch(kernel, Grid{1}, 10u);
  batch = std::move(moved);
  CHECK(batch.submit().wait(soon(), kActiveWait));
  CHECK(ran.back() == 10);
  CHECK(ran.size() == 9);
}

TEST_CASE("a moved batch ends with its queue", "[misuse]") {
  DoubleDevice device;
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {}), other(device.queue(), {});
  Prepared<uint32_t> prepared = batch.prepare(kernel, Grid{1});
  batch.dispatch(kernel, Grid{1}, 1u);
  other.dispatch(kernel, Grid{1}, 2u);
  std::optional<BatchSubmitter> moved(std::move(batch));
  batch = std::move(other);
  device.destroy_queue();
  check_refuses(*moved, prepared);
  CHECK(contains(error_of<Error>([&] { (void)batch.submit(); }), "its Queue no longer exists"));
  other = std::move(*moved);
  check_refuses(other, prepared);
  moved.reset();
  check_refuses(other, prepared);
}

TEST_CASE("a recording may move between and during its replays", "[misuse]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({.device = {.ring_size = 16}},
                      [&](uint32_t number) { ran.push_back(number); });
  const auto kernel = number_kernel();
  static_assert(std::is_nothrow_move_constructible_v<Recording>);
  static_assert(std::is_nothrow_move_assignable_v<Recording>);
  std::vector<Block> kernargs(2048);
  const auto made = device.recording(std::as_writable_bytes(std::span(kernargs)),
                                     {.spare_kernarg_bytes = 64 << 10});
  Recording& recording = *made;
  const Node first = recording.dispatch(kernel, Grid{1}, 0u);
  for (uint32_t i = 1; i < 40; ++i) recording.dispatch(kernel, Grid{1}, i);
  device.processor().pause();
  CHECK(contains(
      error_of<Error>([&] { (void)recording.replay(device.queue(), Deadline::after(5ms)); }),
      "packets of this batch are published"));
  Recording moved{std::move(recording)};
  device.processor().resume();
  CHECK(moved.replay(device.queue(), soon()).wait(soon(), kActiveWait));
  moved.set<0>(first, 100u);
  CHECK(moved.replay(device.queue(), soon()).wait(soon(), kActiveWait));
  REQUIRE(ran.size() == 80);
  for (uint32_t i = 0; i < 80; ++i) CHECK(ran[i] == (i == 40 ? 100 : i % 40));

  // NOLINTBEGIN(bugprone-use-after-move): the subject
  const std::map<std::string, std::function<void()>> uses = {
      {"dispatch", [&] { recording.dispatch(kernel, Grid{1}, 1u); }},
      {"raw", [&] { recording.raw(aql::to_packet(aql::BarrierAnd{})); }},
      {"set", [&] { recording.set<0>(first, 1u); }},
      {"set_grid", [&] { recording.set_grid(first, Grid{2}); }},
      {"replace", [&] { recording.replace(first, kernel, Grid{1}, 1u); }},
      {"replay", [&] { (void)recording.replay(device.queue()); }},
      {"replay until a deadline", [&] { (void)recording.replay(device.queue(), soon()); }},
      {"try_replay", [&] { (void)recording.try_replay(device.queue()); }},
      {"node", [&] { (void)recording.node<uint32_t>(0); }},
      {"kernargs", [&] { (void)recording.kernargs(); }},
      {"plan", [&] { (void)recording.plan(); }},
      {"explain", [&] { (void)recording.explain(); }}};
  for (const auto& [name, use] : uses) {
    CAPTURE(name);
    CHECK(contains(error_of<Error>(use), "this one was moved from"));
  }
  CHECK(recording.size() == 0);
  CHECK(recording.replays() == 0);
  recording.abandon();
  recording = std::move(moved);
  // NOLINTEND(bugprone-use-after-move)
  CHECK(recording.replays() == 2);
  CHECK(recording.replay(device.queue(), soon()).wait(soon(), kActiveWait));
}

TEST_CASE("a partly published batch or recording accepts no declarations", "[misuse]") {
  DoubleDevice device({.device = {.ring_size = 16, .paused = true}});
  const auto kernel = number_kernel();
  auto batch = device.batch();
  for (uint32_t i = 0; i < 39; ++i) batch.dispatch(kernel, Grid{1}, i);
  CommandRef last = batch.dispatch(kernel, Grid{1}, 39u);
  CHECK_THROWS_AS(batch.submit(Deadline::after(1ms)), Error);
  CHECK(contains(error_of<Error>([&] { last.touches_nothing(); }), "are already published"));
  CHECK_FALSE(batch.try_submit());
  device.processor().resume();
  CHECK(batch.submit(soon()).wait(soon(), kActiveWait));
  const auto flags = aql::header_flags(device.processor().completed().back().packet.header());
  CHECK(flags.release == aql::FenceScope::system);  // invariant 5

  std::vector<Block> kernargs(256);
  const auto recording =
      device.recording(std::as_writable_bytes(std::span(kernargs)), {.spare_kernarg_bytes = 64});
  Node node = recording->dispatch(kernel, Grid{1}, 0u);
  for (uint32_t i = 1; i < 40; ++i) recording->dispatch(kernel, Grid{1}, i);
  device.processor().pause();
  CHECK_THROWS_AS(recording->replay(device.queue(), Deadline::after(1ms)), Error);
  CHECK(contains(error_of<Error>([&] { node.touches_nothing(); }), "abandon()"));
  CHECK_FALSE(recording->try_replay(device.queue()));
  device.processor().resume();
  CHECK(recording->replay(device.queue(), soon()).wait(soon(), kActiveWait));
}

TEST_CASE("a CommandRef is valid until its batch changes, and reports its use afterwards",
          "[misuse]") {
  DoubleDevice device;
  const auto kernel = number_kernel();
  uint32_t data = 0;
  BatchSubmitter batch(device.queue(), {});
  CommandRef ref = batch.dispatch(kernel, Grid{1}, 1u);
  ref.reads(&data, 1).writes(&data, 1).without_barrier();
  ref.observed_by(Observer::system);
  SECTION("by a further dispatch") { batch.dispatch(kernel, Grid{1}, 2u); }
  SECTION("by a raw packet") { batch.raw(aql::to_packet(aql::BarrierAnd{})); }
  SECTION("by its submission") { batch.submit(); }
  SECTION("by clearing it") { batch.clear(); }
  SECTION("by the end of its queue") { device.destroy_queue(); }
  const char* const expected = "no longer the last packet of its batch";
  CHECK(contains(error_of<Error>([&] { ref.reads(&data, 1); }), expected));
  CHECK(contains(error_of<Error>([&] { ref.touches_nothing(); }), expected));
  CHECK(contains(error_of<Error>([&] { ref.after_packets({0}); }), expected));
  CHECK(contains(error_of<Error>([&] { ref.observed_by(Observer::agent); }), expected));
  CHECK(contains(error_of<Error>([&] { ref.fences(aql::FenceScope::none, aql::FenceScope::none); }),
                 expected));
  CHECK(contains(error_of<Error>([&] { ref.without_barrier(); }), expected));
}

TEST_CASE("destroying a queue drops the rest of a partly published batch", "[misuse]") {
  DoubleDevice device({.device = {.ring_size = 16}});
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {});
  Prepared<uint32_t> prepared = batch.prepare(kernel, Grid{1});
  device.processor().pause();
  for (uint32_t i = 0; i < 100; ++i) batch.dispatch(kernel, Grid{1}, i);
  CHECK(contains(error_of<Error>([&] { (void)batch.submit(Deadline::after(5ms)); }),
                 "packets of this batch are published"));
  Timeline& timeline = device.state().timeline();
  const uint64_t value = timeline.last_begun();
  device.processor().resume();
  device.destroy_queue();
  CHECK(timeline.is_done(value));  // the published packets have executed
  check_refuses(batch, prepared);
}

TEST_CASE("a recording whose replay is partly published in a destroyed queue replays on another",
          "[misuse]") {
  std::vector<uint32_t> ran;
  DoubleDevice destroyed({.device = {.ring_size = 16}});
  DoubleDevice other({}, [&](uint32_t number) { ran.push_back(number); });
  const auto kernel = number_kernel();
  std::vector<Block> kernargs(2048);
  const auto made = destroyed.recording(std::as_writable_bytes(std::span(kernargs)),
                                        {.spare_kernarg_bytes = 64 << 10});
  Recording& recording = *made;
  for (uint32_t i = 0; i < 40; ++i) recording.dispatch(kernel, Grid{1}, i);
  destroyed.processor().pause();
  CHECK(contains(
      error_of<Error>([&] { (void)recording.replay(destroyed.queue(), Deadline::after(5ms)); }),
      "packets of this batch are published"));
  CHECK(contains(error_of<Error>([&] { (void)recording.replay(other.queue(), soon()); }),
                 "a replay on another queue"));
  destroyed.processor().resume();
  destroyed.destroy_queue();
  recording.abandon();
  CHECK(recording.replay(other.queue(), soon()).wait(soon(), kActiveWait));
  REQUIRE(ran.size() == 40);
  for (uint32_t i = 0; i < 40; ++i) CHECK(ran[i] == i);
}

TEST_CASE("a recording outlives its queue, also during a replay", "[misuse]") {
  DoubleDevice device({.device = {.ring_size = 16}});
  const auto kernel = number_kernel();
  std::vector<Block> kernargs(2048);
  auto recording = device.recording(std::as_writable_bytes(std::span(kernargs)),
                                    {.spare_kernarg_bytes = 64 << 10});
  for (uint32_t i = 0; i < 40; ++i) recording->dispatch(kernel, Grid{1}, i);
  device.processor().pause();
  CHECK(contains(
      error_of<Error>([&] { (void)recording->replay(device.queue(), Deadline::after(5ms)); }),
      "packets of this batch are published"));
  device.processor().resume();
  device.destroy_queue();
  recording->abandon();
  recording.reset();
}

TEST_CASE("dispatches of a batch follow those that they name, of this batch only", "[misuse]") {
  DoubleDevice device;
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {}), other(device.queue(), {});
  const CommandRef root = batch.dispatch(kernel, Grid{1}, 0u).after();
  batch.dispatch(kernel, Grid{1}, 1u).after();
  CommandRef last = batch.dispatch(kernel, Grid{1}, 2u).after(root);
  const CommandRef foreign = other.dispatch(kernel, Grid{1}, 3u);
  CHECK(contains(error_of<Error>([&] { last.after(foreign); }),
                 "packet 2 after packet 0 of another batch"));
  REQUIRE(batch.submit().wait(soon(), kActiveWait));
  CHECK(batch.plan()[1].flags.barrier == aql::Barrier::off);
  CHECK(contains(batch.explain(), "packet 2: barrier bit: it depends on packet 0"));
}
