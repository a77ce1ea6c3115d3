// Batches and recordings when one allocation fails: for each allocation that an operation makes.
// Published work runs and is not reported as refused; refused work can be submitted again. The
// double's destructor checks that nothing is left in use.
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>
#include "test/engine/double_device.hpp"
#include "test/support/catch.hpp"
#include "test/support/failing_new.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

struct Line {
  alignas(64) std::byte bytes[64];
};

struct QueueWorld {
  static DoubleOptions options() {
    DoubleOptions options;
    options.device.ring_size = 16;
    options.device.reads_packet = kReadsPacket;
    options.queue.packets = 16;
    options.queue.timing_signals = 24;
    options.signals = 64;
    return options;
  }

  uint64_t published() const { return (Counters::now() - before).packets; }

  std::vector<uint32_t> ran;
  DoubleDevice device{options(), [this](uint32_t number) { ran.push_back(number); }};
  Counters before = Counters::now();
};

std::vector<uint32_t> numbers(uint32_t count) {
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < count; ++i) all.push_back(i);
  return all;
}

struct BatchWorld : QueueWorld {
  std::optional<BatchSubmitter> batch;
};

// Submits a batch that `fill` has filled with the kernels below `kernels`.
template <class Fill>
void check_batch(const BatchOptions& options, uint32_t kernels, Fill fill) {
  fail_each_allocation<BatchWorld>(
      [&](BatchWorld& world) {
        // Filling may fail, too; it publishes nothing.
        world.batch.emplace(world.device.queue(), options);
        fill(*world.batch);
        (void)world.batch->submit(soon());
      },
      [&](BatchWorld& world, bool threw) {
        if (threw) {
          CHECK(world.published() == 0);
          world.batch.reset();
          world.batch.emplace(world.device.queue(), options);
          fill(*world.batch);
          (void)world.batch->submit(soon());
        }
        CHECK(world.device.queue().last_submitted().wait(soon(), kActiveWait));
        CHECK(world.ran == numbers(kernels));
        world.batch.reset();
      });
}

}  // namespace

TEST_CASE("a batch that finds no memory publishes nothing or all", "[memory][submit]") {
  const auto kernel = number_kernel(), reader = late_reader();
  const aql::Packet64 barrier = aql::to_packet(aql::BarrierAnd{});
  const auto fill = [&](uint32_t count) {
    return [&, count](BatchSubmitter& batch) {
      for (uint32_t i = 0; i < count; ++i) batch.dispatch(kernel, Grid{1}, i);
    };
  };
  SECTION("a packet") { check_batch({}, 1, fill(1)); }
  SECTION("some packets") { check_batch({}, 6, fill(6)); }
  SECTION("more than the ring takes") { check_batch({}, 40, fill(40)); }
  SECTION("timed") { check_batch({.timing = Timing::each}, 6, fill(6)); }
  SECTION("timed, and more than the ring takes") {
    check_batch({.timing = Timing::each}, 20, fill(20));
  }
  SECTION("with the fewest fences") {
    uint32_t word = 0;
    check_batch({}, 6, [&](BatchSubmitter& batch) {
      for (uint32_t i = 0; i < 6; ++i) batch.dispatch(kernel, Grid{1}, i).writes(&word, 1);
    });
  }
  SECTION("with a caller's kernarg block") {
    std::array<Line, 2> blocks;
    check_batch({}, 2, [&](BatchSubmitter& batch) {
      for (uint32_t i = 0; i < 2; ++i) batch.dispatch_at(blocks[i].bytes, kernel, Grid{1}, i);
    });
  }
  SECTION("ending with a finished packet") {
    check_batch({}, 3, [&](BatchSubmitter& batch) {
      fill(3)(batch);
      batch.raw(barrier);
    });
  }
  SECTION("with kernels that read their packets") {
    check_batch({}, 40, [&](BatchSubmitter& batch) {
      for (uint32_t i = 0; i < 40; ++i) batch.dispatch(reader, Grid{1}, i);
    });
  }
}

TEST_CASE("finished batches are reclaimed without memory", "[memory][submit]") {
  struct Timed : BatchWorld {
    Timed() {
      batch.emplace(device.queue(), BatchOptions{.timing = Timing::each});
      for (uint32_t i = 0; i < 4; ++i) batch->dispatch(kernel, Grid{1}, i);
      first = batch->submit(soon());
      CHECK(first.wait(soon(), kActiveWait));
      batch->dispatch(kernel, Grid{1}, 4u);
    }
    Kernel<uint32_t> kernel = number_kernel();
    Completion first;
  };
  fail_each_allocation<Timed>(
      [](Timed& world) { (void)world.batch->submit(soon()); },
      [](Timed& world, bool threw) {
        if (threw) (void)world.batch->submit(soon());
        CHECK(world.device.queue().last_submitted().wait(soon(), kActiveWait));
        CHECK(world.ran == numbers(5));
        CHECK(world.first.times().size() == 4);
        world.batch.reset();
      });
}

TEST_CASE("a batch that finds no memory at its deadline continues where it stopped",
          "[memory][submit]") {
  struct Paused : BatchWorld {
    Paused() {
      device.processor().pause();
      batch.emplace(device.queue(), BatchOptions{.timing = Timing::each});
      for (uint32_t i = 0; i < 20; ++i) batch->dispatch(kernel, Grid{1}, i);
    }
    Kernel<uint32_t> kernel = number_kernel();
  };
  fail_each_allocation<Paused>(
      [](Paused& world) {
        try {
          (void)world.batch->submit(Deadline::after(1ms));
        } catch (const Error&) {  // the ring is full
        }
      },
      [](Paused& world, bool) {
        world.device.processor().resume();
        const Completion done = world.batch->submit(soon());
        CHECK(done.wait(soon(), kActiveWait));
        CHECK(world.ran == numbers(20));
        CHECK(done.times().size() == 20);
        world.batch->dispatch(world.kernel, Grid{1}, 20u);
        CHECK(world.batch->submit(soon()).wait(soon(), kActiveWait));
        CHECK(world.published() >= 21);
        world.batch.reset();
      });
}

TEST_CASE("a replay that finds no memory publishes nothing or all", "[memory][recording]") {
  struct Recorded : QueueWorld {
    Recorded() {
      kernargs.resize(256);
      recording = device.recording(std::as_writable_bytes(std::span(kernargs)),
                                   {.spare_kernarg_bytes = 1024});
      // As many nodes as a vector that grows by doubling has room for.
      for (uint32_t i = 0; i < 3; ++i) recording->dispatch(number_kernel(), Grid{1}, i);
      recording->raw(aql::to_packet(aql::BarrierAnd{}));
    }
    ~Recorded() { recording.reset(); }
    std::vector<Line> kernargs;
    std::unique_ptr<Recording> recording;
  };
  fail_each_allocation<Recorded>(
      [](Recorded& world) { (void)world.recording->replay(world.device.queue(), soon()); },
      [](Recorded& world, bool threw) {
        CHECK(world.published() == (threw ? 0 : 5));
        CHECK(world.recording->replays() == (threw ? 0 : 1));
        if (threw) (void)world.recording->replay(world.device.queue(), soon());
        CHECK(world.device.queue().last_submitted().wait(soon(), kActiveWait));
        CHECK(world.ran == numbers(3));
      });
}
