// The destruction of public objects when one allocation fails, for each that it makes. A destructor
// that needs memory would end the process by std::terminate. Also their constructors, which throw
// and leave nothing behind.
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include <uptempo/completion/notifier.hpp>
#include <uptempo/completion/timeline.hpp>
#include <uptempo/fences/fence_plan.hpp>
#include <uptempo/recording/recorded_blocks.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/session.hpp>
#include "test/engine/double_device.hpp"
#include "test/engine/stream/stream_devices.hpp"
#include "test/support/catch.hpp"
#include "test/support/failing_new.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

// Makes what a Runtime would have made.
const bool kHasSession = Session::running() != nullptr;

enum class Stage { idle, finished, unfinished, failed };

// A queue with a batch that was submitted, one that was not, and a recording, whose device has
// executed all, nothing, or has failed.
template <Stage kStage>
struct EndingQueue {
  struct Line {
    alignas(64) std::byte bytes[64];
  };

  static DoubleOptions options() {
    DoubleOptions options;
    options.queue.drain_timeout = 1ms;
    options.queue.timing_signals = 8;
    options.device.paused = kStage == Stage::unfinished || kStage == Stage::failed;
    return options;
  }

  EndingQueue() {
    if (kStage == Stage::idle) return;
    const auto kernel = number_kernel();
    submitted.emplace(device.queue(), BatchOptions{.timing = Timing::each});
    waiting.emplace(device.queue());
    for (uint32_t i = 0; i < 3; ++i) submitted->dispatch(kernel, Grid{1}, i);
    waiting->dispatch(kernel, Grid{1}, 3u);
    const Completion done = submitted->submit(soon());
    // A recording waits longer than this test for replays that do not end.
    if (kStage != Stage::unfinished) {
      kernargs.resize(64);
      recording = device.recording(std::as_writable_bytes(std::span(kernargs)),
                                   {.spare_kernarg_bytes = 256});
      recording->dispatch(kernel, Grid{1}, 4u);
      (void)recording->replay(device.queue(), soon());
    }
    if (kStage == Stage::finished) CHECK(device.queue().last_submitted().wait(soon(), kActiveWait));
    if (kStage == Stage::failed) device.processor().fail(HSA_STATUS_ERROR_INVALID_ISA);
    (void)done;
  }
  ~EndingQueue() { end(); }
  void end() {
    recording.reset();
    submitted.reset();
    device.destroy_queue();
    waiting.reset();
  }

  DoubleDevice device{options()};
  std::optional<BatchSubmitter> submitted, waiting;
  std::vector<Line> kernargs;
  std::unique_ptr<Recording> recording;
};

template <Stage kStage>
void check_end_of_queue() {
  fail_each_allocation<EndingQueue<kStage>>(
      [](EndingQueue<kStage>& world) { world.end(); },
      [](EndingQueue<kStage>&, bool threw) { CHECK_FALSE(threw); });
}

template <Stage kStage>
struct EndingStreams {
  static StreamDevicesOptions options() {
    StreamDevicesOptions options;
    options.streams.queue.drain_timeout = 1ms;
    options.device.paused = kStage != Stage::finished;
    return options;
  }
  EndingStreams() {
    for (uint32_t i = 0; i < 3; ++i) first->launch(kernel, Grid{1}, i);
    event = first->record();
    second->after(event);
    second->launch(kernel, Grid{1}, 3u);
    if (kStage == Stage::finished) devices.streams().synchronize();
    if (kStage == Stage::failed) devices.device(0).fail(HSA_STATUS_ERROR_INVALID_ISA);
  }
  void end() {
    second.reset();
    first.reset();
    devices.destroy_streams();
  }

  StreamDevices devices{options()};
  Kernel<uint32_t> kernel = number_kernel();
  Event event;
  std::optional<Stream> first{std::in_place, devices.streams()},
      second{std::in_place, devices.streams()};
};

template <Stage kStage>
void check_end_of_streams() {
  fail_each_allocation<EndingStreams<kStage>>(
      [](EndingStreams<kStage>& world) { world.end(); },
      [](EndingStreams<kStage>&, bool threw) { CHECK_FALSE(threw); });
}

}  // namespace

TEST_CASE("a queue with batches and a recording ends without memory", "[memory][end]") {
  SECTION("idle") { check_end_of_queue<Stage::idle>(); }
  SECTION("finished") { check_end_of_queue<Stage::finished>(); }
  SECTION("unfinished") { check_end_of_queue<Stage::unfinished>(); }
  SECTION("failed") { check_end_of_queue<Stage::failed>(); }
}

TEST_CASE("streams end without memory", "[memory][end]") {
  SECTION("finished") { check_end_of_streams<Stage::finished>(); }
  SECTION("unfinished") { check_end_of_streams<Stage::unfinished>(); }
  SECTION("failed") { check_end_of_streams<Stage::failed>(); }
}

TEST_CASE("a timeline is given back without memory", "[memory][end]") {
  // As many as no list has room for by chance.
  constexpr size_t kMany = 67;
  std::vector<Timeline*> timelines;
  for (size_t i = 0; i < kMany; ++i) timelines.push_back(&Timeline::acquire(11));
  for (Timeline* const timeline : timelines) {
    const FailingNew failing(1);
    timeline->release();
    CHECK_FALSE(failing.has_failed());
  }
}

TEST_CASE("a queue that finds no memory at its construction takes nothing", "[memory][end]") {
  struct World {
    DoubleDevice device;
    std::array<std::byte, 4096> kernargs{};
    std::deque<SignalDouble> signals;
    std::vector<hsa_signal_t> handles;
    QueueDouble ring;
    Timeline::Census before = Timeline::census();
    std::unique_ptr<detail::BatchQueue> made;
    World() {
      for (int i = 0; i < 8; ++i) handles.push_back(signals.emplace_back(0).handle());
    }
    void make() {
      made = std::make_unique<detail::BatchQueue>(
          detail::BatchQueue::Parts{.queue = ring.queue(), .kernargs = kernargs}, handles,
          QueueOptions{.packets = 64,
                       .publications = 4,
                       .timing_signals = 0,
                       .kernarg_bytes = 4096,
                       .kernarg_slab_bytes = 1024});
    }
  };
  fail_each_allocation<World>([](World& world) { world.make(); },
                              [](World& world, bool threw) {
                                if (threw) {
                                  const Timeline::Census now = Timeline::census();
                                  CHECK(now.all - now.free == world.before.all - world.before.free);
                                  world.make();
                                }
                                CHECK(world.made != nullptr);
                                world.made.reset();
                              });
}

TEST_CASE("blocks of a recording return without memory, also after it ran short", "[memory][end]") {
  struct World {
    std::vector<std::unique_ptr<std::byte[]>> chunks;
    detail::RecordedBlocks blocks{[this](size_t bytes) {
      chunks.push_back(std::make_unique<std::byte[]>(bytes));
      return std::span(chunks.back().get(), bytes);
    }};
    std::vector<std::byte*> taken;
  };
  const auto work = [](World& world) {
    world.taken.reserve(8);
    for (const uint32_t size : {64u, 192u, 320u}) world.blocks.expect(size);
    world.blocks.keep_spare(8 * 320);
  };
  fail_each_allocation<World>(work, [&](World& world, bool threw) {
    if (threw) work(world);
    for (int i = 0; i < 8; ++i) {
      world.taken.push_back(world.blocks.take_spare(320, 0));
      REQUIRE(world.taken.back() != nullptr);
    }
    const FailingNew failing(1);
    for (std::byte* const block : world.taken) world.blocks.retire(block, 320, 1);
    bool all_are_back = true;
    for (std::byte* const block : world.taken)
      all_are_back = all_are_back && world.blocks.take_spare(320, 1) == block;
    CHECK(all_are_back);
    CHECK_FALSE(failing.has_failed());
  });
}

TEST_CASE("a plan that ran short of memory is made whole by the next call", "[memory][end]") {
  struct World {
    FencePlan plan;
  };
  static float memory[5];
  const auto fill = [](FencePlan& plan) {
    for (size_t i = 0; i + 1 < std::size(memory); ++i) plan.dispatch().writes(memory + i, 2);
  };
  FencePlan fresh;
  fill(fresh);
  const FenceCost expected = fresh.cost();
  fail_each_allocation<World>(
      [&](World& world) {
        fill(world.plan);
        (void)world.plan.packets();
      },
      [&](World& world, bool) {
        if (world.plan.size() != fresh.size()) return;  // before it was complete
        CHECK(world.plan.cost() == expected);
      });
}

TEST_CASE("a notifier that was never used ends without memory", "[memory][end]") {
  std::optional<CompletionNotifier> notifier(std::in_place, 4u);
  const FailingNew failing(1);
  notifier.reset();
  CHECK_FALSE(failing.has_failed());
}
