// The cost of polling an event on a device.
#include <uptempo/uptempo.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include <uptempo/stream/copy/retired.hpp>
#include "test/support/catch.hpp"
#include "test/support/on_device.hpp"
#include "tools/support/cost_meter.hpp"

using namespace uptempo;
using uptempo::test::OnDevice;

TEST_CASE_METHOD(
    OnDevice,
    "polling an event takes no lock and makes no call, also when a copy has pinned memory",
    "[device][stream][copy]") {
  Streams streams(gpu, {.copies = {.stage_bytes = 0}});
  Stream stream(streams);
  constexpr size_t count = 300000;
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + 1);
  std::vector<uint8_t> back(count);
  DeviceBuffer<uint8_t> memory(gpu, count);
  Copier(gpu).copy(memory, bytes);
  const Counters before = Counters::now();
  const auto unpins = [&] { return (Counters::now() - before).unpins; };
  stream.copy(std::span(back), memory);
  const Event done = stream.record();
  support::Cost cost;
  for (bool is_ready = false; !is_ready;)
    cost += support::cost_of([&] { is_ready = done.ready(); });
  CHECK(cost.allocations == 0);
  CHECK(cost.locks == 0);
  CHECK(cost.system_calls == 0);
  CHECK(back == bytes);
  CHECK(unpins() == 0);
  SECTION("a wait unpins") { done.wait(); }
  SECTION("synchronize() unpins") { stream.synchronize(); }
  SECTION("the next copy that pins unpins") { stream.copy(std::span(back), memory); }
  CHECK(unpins() == 1);
  streams.synchronize();
  CHECK(detail::RetiredList::of_process().size() == 0);
}
