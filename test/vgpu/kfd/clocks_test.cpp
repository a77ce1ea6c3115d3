#include <ctime>

#include "device/clock.hpp"
#include "hsakmt_fixture.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

TEST_CASE("clock counters never run backwards", "[clocks]") {
  const Thunk thunk;
  HsaClockCounters last{};
  for (int i = 0; i < 1000; ++i) {
    HsaClockCounters now{};
    REQUIRE(hsaKmtGetClockCounters(kGpuNode, &now) == HSAKMT_STATUS_SUCCESS);
    REQUIRE(value(now.GPUClockCounter) >= value(last.GPUClockCounter));
    REQUIRE(value(now.CPUClockCounter) >= value(last.CPUClockCounter));
    REQUIRE(value(now.SystemClockCounter) >= value(last.SystemClockCounter));
    last = now;
  }
}

TEST_CASE("the GPU counter runs at 100 MHz of the system counter's 1 GHz", "[clocks]") {
  const Thunk thunk;
  HsaClockCounters begin{};
  HsaClockCounters end{};
  REQUIRE(hsaKmtGetClockCounters(kGpuNode, &begin) == HSAKMT_STATUS_SUCCESS);
  const timespec pause{0, 100'000'000};
  nanosleep(&pause, nullptr);
  REQUIRE(hsaKmtGetClockCounters(kGpuNode, &end) == HSAKMT_STATUS_SUCCESS);
  CHECK(value(end.SystemClockFrequencyHz) == 1'000'000'000);
  const auto gpu_ns =
      static_cast<double>(value(end.GPUClockCounter) - value(begin.GPUClockCounter)) * 10;
  const auto system_ns =
      static_cast<double>(value(end.SystemClockCounter) - value(begin.SystemClockCounter));
  CHECK(gpu_ns == test::Approx(system_ns).epsilon(0.001));
}

TEST_CASE("the GPU counter is the clock of packet timestamps", "[clocks]") {
  const Thunk thunk;
  const uint64_t before = gpu_clock_ticks();
  HsaClockCounters now{};
  REQUIRE(hsaKmtGetClockCounters(kGpuNode, &now) == HSAKMT_STATUS_SUCCESS);
  CHECK(value(now.GPUClockCounter) >= before);
  CHECK(value(now.GPUClockCounter) <= gpu_clock_ticks());
}

}  // namespace
}  // namespace uptempo::vgpu
