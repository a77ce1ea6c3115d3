// The four ways on a device, and their HSA calls: counted at HSA, not by the engine.
#include <uptempo/kernels/membrane.hpp>

#include <memory>

#include "samples/launch_loop/loop.hpp"
#include "test/support/catch.hpp"
#include "test/support/hsa_calls.hpp"
#include "test/support/on_device.hpp"
#include "tools/support/cost_meter.hpp"

using namespace uptempo;
using namespace uptempo::launch_loop;
using support::HsaCalls;

namespace {

struct Device : test::OnDevice {
  Program program{gpu, kernels::membrane()};
};

}  // namespace

TEST_CASE(
    "after 2,000 steps the state has the same bits with arguments skipped, written, and on the "
    "host") {
  const Device device;
  HostMembrane host;
  DeviceMembrane written(device.gpu, device.program, Way::cached_scratch);
  DeviceMembrane skipped(device.gpu, device.program, Way::skipped_arguments);
  constexpr uint32_t steps = 2000, kernels = 60;
  const Counters before = Counters::now();
  for (uint32_t step = 0; step < steps; ++step) {
    drive(host, kernels, step);
    drive(written, kernels, step);
    drive(skipped, kernels, step);
    host.observe();
    written.observe();
    skipped.observe();
    REQUIRE(written.observation() == host.observation());
    REQUIRE(skipped.observation() == host.observation());
  }
  CHECK(written.height() == host.height());
  CHECK(written.speed() == host.speed());
  CHECK(skipped.height() == host.height());
  CHECK(skipped.speed() == host.speed());
  // 10 of 60 kernels have other arguments each time.
  CHECK((Counters::now() - before).argument_hits >= steps * 49);
}

TEST_CASE("all ways take turns, and are right") {
  const Device device;
  const std::vector<Row> rows = run(device.gpu, {.steps = 130, .kernels = 14});
  REQUIRE(rows.size() == 4);
  for (const Row& row : rows) {
    CAPTURE(row.way, row.wrong_observations);
    CHECK(row.is_right());
    CHECK(row.us_per_step.size() == 2);
    CHECK(row.counted_steps + kFirstSteps == row.steps);
  }
  CHECK(rows[0].counted_steps == 6);
  // An argument block for each kernel, and memory for each of two arrays.
  CHECK(rows[0].counters.memory_allocations == 6 * 16);
  CHECK(rows[2].counters.argument_hits == 0);
  CHECK(rows[3].counters.argument_hits == 120 * (14 - 2));
  CHECK(rows[3].counters.host_waits <= 120);
}

TEST_CASE("each way makes the HSA calls that it demonstrates, and launchers make none") {
  const Device device;
  const auto calls_of_a_step = [&](Way way) {
    DeviceMembrane membrane(device.gpu, device.program, way);
    HsaCalls before{};
    for (uint32_t step = 0; step <= kFirstSteps; ++step) {
      before = HsaCalls::now();
      drive(membrane, 14, step);
      membrane.observe();
    }
    return HsaCalls::now() - before;
  };
  // An argument block for each kernel, and memory for each of two arrays; a signal for each wait.
  CHECK(calls_of_a_step(Way::naive) ==
        HsaCalls{.allocations = 16, .frees = 16, .signals_created = 14, .blocking_copies = 2});
  // In addition, pinned memory for each array, a signal for each copy and for the work it waits
  // for.
  CHECK(calls_of_a_step(Way::async_copies) ==
        HsaCalls{.allocations = 18, .frees = 18, .signals_created = 3, .started_copies = 2});
  CHECK(calls_of_a_step(Way::cached_scratch) == HsaCalls{});
  CHECK(calls_of_a_step(Way::skipped_arguments) == HsaCalls{});
}

TEST_CASE("in steady state a step is submitted without heap and wait, and then waited for once") {
  const Device device;
  for (const Way way : {Way::cached_scratch, Way::skipped_arguments}) {
    DeviceMembrane membrane(device.gpu, device.program, way);
    for (uint32_t step = 0; step < 60; ++step) {
      const Counters before = Counters::now();
      const support::Cost handing_over = support::cost_of([&] { drive(membrane, 60, step); });
      const uint64_t waits = (Counters::now() - before).host_waits;
      membrane.observe();
      const Counters spent = Counters::now() - before;
      if (step < 20) continue;  // until all kept resources exist
      CAPTURE(way, step);
      CHECK(handing_over.allocations == 0);
      CHECK(waits == 0);
      CHECK(spent.host_waits <= 1);
    }
  }
}

TEST_CASE("a launcher whose kernel has no arrays has no memory except for skipped arguments") {
  const Device device;
  for (const Way way : {Way::cached_scratch, Way::skipped_arguments}) {
    DeviceMembrane membrane(device.gpu, device.program, way);
    const HsaCalls before = HsaCalls::now();
    for (int i = 0; i < 50; ++i) {
      membrane.tension();
      membrane.drift();
    }
    // One for each of the two launchers.
    const uint64_t blocks = way == Way::skipped_arguments ? 2 : 0;
    CAPTURE(way);
    CHECK(HsaCalls::now() - before == HsaCalls{.allocations = blocks});
    membrane.observe();
    CHECK(membrane.observation() == Observation{});
  }
}
