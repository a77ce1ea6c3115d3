// The four ways on a device, and their HSA calls: counted at HSA, not by the engine.
#include <uptempo/kernels/membrane.hpp>

#include <memory>

#include "samples/launch_loop/loop.hpp"
#include "test/support/catch.hpp"
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

TEST_CASE("each way makes the HSA calls that it demonstrates, and launchers make none") {
  const Device device;
  const std::vector<Row> rows = run(device.gpu, {.steps = 130, .kernels = 14});
  REQUIRE(rows.size() == 4);
  for (const Row& row : rows) {
    CAPTURE(row.way, row.wrong_observations);
    CHECK(row.is_right());
    CHECK(row.us_per_step.size() == 2);
    CHECK(row.counted_steps + kFirstSteps == row.steps);
  }
  const auto of = [&](Way way) { return rows[static_cast<size_t>(way)]; };
  const uint64_t few = of(Way::naive).counted_steps;
  CHECK(few == 6);
  // An argument block for each kernel, and memory for each of two arrays; a signal for each wait.
  CHECK(of(Way::naive).calls == HsaCalls{.allocations = few * 16,
                                         .frees = few * 16,
                                         .signals_created = few * 14,
                                         .blocking_copies = few * 2});
  // In addition, pinned memory for each array, a signal for each copy and for the work it waits
  // for.
  CHECK(of(Way::async_copies).calls == HsaCalls{.allocations = few * 18,
                                                .frees = few * 18,
                                                .signals_created = few * 3,
                                                .started_copies = few * 2});
  CHECK(of(Way::cached_scratch).calls == HsaCalls{});
  CHECK(of(Way::skipped_arguments).calls == HsaCalls{});
  CHECK(of(Way::cached_scratch).counters.argument_hits == 0);
  CHECK(of(Way::skipped_arguments).counters.argument_hits ==
        of(Way::skipped_arguments).counted_steps * (14 - 2));
  CHECK(of(Way::skipped_arguments).counters.host_waits <= of(Way::skipped_arguments).counted_steps);
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
