// Exhaustion of each finite resource of a queue: a try refuses, an expired deadline is an error
// that names the resource, a wait is served when one is returned, and the levels report the
// shortage before.
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include <uptempo/runtime/error.hpp>
#include "test/engine/double_device.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;

// A queue with one scarce resource, the number of batches of two dispatches that exhaust it, and
// its name in the error.
struct Scarce {
  const char* name;
  DoubleOptions options;
  uint32_t batches;
  Timing timing;
  const char* in_the_error;
  Level Pressure::*level;
};

DoubleOptions plenty() {
  return {.device = {.ring_size = 64, .paused = true},
          .queue = {.packets = 64,
                    .publications = 64,
                    .timing_signals = 0,
                    .kernarg_bytes = 64 << 10,
                    .kernarg_slab_bytes = 64,
                    .drain_timeout = 2s},
          .signals = 64};
}

std::vector<Scarce> scarcities() {
  Scarce ring{"ring", plenty(), 8, Timing::none, "run of 2 slots in the ring", &Pressure::ring};
  ring.options.device.ring_size = 16;
  Scarce publications{"publications",         plenty(), 8, Timing::none, "place on the timeline",
                      &Pressure::publications};
  publications.options.queue.publications = 8;
  Scarce signals{"signals", plenty(), 8, Timing::none, "completion signal", &Pressure::signals};
  signals.options.signals = 8;
  Scarce timing{"timing signals",    plenty(),          4, Timing::batch,
                "completion signal", &Pressure::signals};
  timing.options.signals = 8;
  Scarce kernargs{"kernargs", plenty(), 8, Timing::none, "kernarg slab", &Pressure::kernarg_slabs};
  kernargs.options.queue.kernarg_bytes = 16 * 64;
  return {ring, publications, signals, timing, kernargs};
}

bool fill(BatchSubmitter& batch, const Kernel<uint32_t>& kernel) {
  for (uint32_t i = 0; i < 2; ++i)
    if (!batch.try_dispatch(kernel, Grid{1}, i)) return false;
  return batch.try_submit().has_value();
}

}  // namespace

TEST_CASE(
    "an exhausted resource refuses a try, is named after a deadline, and serves waiters when "
    "returned",
    "[pressure]") {
  const auto kernel = number_kernel();
  for (const Scarce& scarce : scarcities()) {
    CAPTURE(scarce.name);
    DoubleDevice device(scarce.options);
    BatchSubmitter batch(device.queue(), {.timing = scarce.timing, .patience = 10ms});
    for (uint32_t i = 0; i < scarce.batches; ++i) REQUIRE(fill(batch, kernel));
    CHECK_FALSE(fill(batch, kernel));
    const auto submit = [&] {
      while (batch.size() < 2) batch.dispatch(kernel, Grid{1}, 1u);
      return batch.submit();
    };
    const auto start = std::chrono::steady_clock::now();
    const std::string error = error_of<Error>(submit);
    CHECK(std::chrono::steady_clock::now() - start >= 10ms);
    CHECK(contains(error, scarce.in_the_error));
    std::thread later([&] {
      std::this_thread::sleep_for(20ms);
      device.processor().resume();
    });
    BatchSubmitter patient(device.queue(), {.timing = scarce.timing, .patience = kHang});
    batch.clear();
    for (uint32_t i = 0; i < 2; ++i) patient.dispatch(kernel, Grid{1}, i);
    CHECK(patient.submit().wait(soon(), kActiveWait));
    later.join();
  }
}

TEST_CASE("the level of a scarce resource is high before it is exhausted, and low when it is free",
          "[pressure]") {
  const auto kernel = number_kernel();
  for (const Scarce& scarce : scarcities()) {
    CAPTURE(scarce.name);
    DoubleDevice device(scarce.options);
    Queue& queue = device.queue();
    {
      BatchSubmitter batch(queue, {.timing = scarce.timing});
      uint32_t high_after = 0;
      for (uint32_t i = 1; i <= scarce.batches; ++i) {
        REQUIRE(fill(batch, kernel));
        if (high_after == 0 && queue.pressure().high()) high_after = i;
      }
      CHECK(high_after == scarce.batches * 3 / 4);
      const Pressure full = queue.pressure();
      CHECK((full.*scarce.level).high);
      CHECK((full.*scarce.level).free() == 0);
      device.processor().resume();
      CHECK(queue.last_submitted().wait(soon(), kActiveWait));
    }
    device.processor().pause();  // its read index follows its signals
    queue.reclaim();
    const Pressure after = queue.pressure();
    CHECK_FALSE(after.high());
    CHECK((after.*scarce.level).in_use == 0);
    if (scarce.level != &Pressure::ring)
      CHECK((after.*scarce.level).peak == (after.*scarce.level).capacity);
  }
}

TEST_CASE("levels may be read by other threads while the owner submits", "[pressure]") {
  DoubleDevice device({.device = {.ring_size = 64}});
  const auto kernel = number_kernel();
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) {
      const Pressure pressure = device.queue().pressure();
      for (const Level& level :
           {pressure.ring, pressure.publications, pressure.signals, pressure.kernarg_slabs})
        if (level.in_use > level.capacity || level.peak > level.capacity)
          FAIL(level.in_use << " of " << level.capacity);
    }
  });
  BatchSubmitter batch(device.queue(), {});
  for (uint32_t round = 0; round < 2000; ++round) {
    batch.dispatch(kernel, Grid{1}, round);
    batch.submit();
  }
  stop = true;
  reader.join();
  CHECK(device.queue().pressure().publications.peak > 0);
}
