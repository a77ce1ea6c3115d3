// Batches that their deadline cuts off, on a real HSA queue.
#include <engine/uptempo.hpp>
#include <kernels/basics.hpp>

#include <algorithm>
#include <chrono>
#include <string>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;
using namespace std::chrono_literals;

using uptempo::test::contains;
using uptempo::test::error_of;
using uptempo::test::OnDevice;
using uptempo::test::soon;

TEST_CASE_METHOD(OnDevice, "a partly published batch refuses another completion signal",
                 "[dispatch]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto empty = program.kernel<>("empty");
  Queue queue{gpu, {.packets = 256}};
  const Signal gate, own;
  BatchSubmitter batch{queue};
  batch.raw(aql::to_packet(aql::BarrierAnd{.dependencies = {gate.handle()}}));
  for (uint32_t i = 0; i < 600; ++i) batch.dispatch(empty, Grid{64});
  CHECK(contains(error_of([&] { batch.submit(Deadline::after(20ms)); }),
                 "packets of this batch are published"));
  const std::string error = error_of([&] { batch.complete_with(own); });
  CHECK(contains(error, "another completion signal"));
  CHECK(contains(error, "are already published"));
  hsa_signal_store_screlease(gate.handle(), 0);
  CHECK(batch.submit(soon()).wait(soon()));
  CHECK(hsa_signal_load_scacquire(own.handle()) == 1);
}

TEST_CASE_METHOD(OnDevice,
                 "a partly published batch that cannot be completed ends its queue at the deadline",
                 "[dispatch]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto fill = program.kernel<uint32_t*, uint32_t>("fill");
  constexpr uint32_t count = 600;
  const PinnedBuffer<uint32_t> out{gpu, count};
  std::fill(out.begin(), out.end(), 0u);
  const Signal gate;
  const std::string reason = "no slot of the ring became free for the packet that completes it";
  const auto drop_part = [&](Queue& queue) {
    BatchSubmitter batch{queue};
    batch.raw(aql::to_packet(aql::BarrierAnd{.dependencies = {gate.handle()}}));
    for (uint32_t i = 0; i < count; ++i) batch.dispatch(fill, Grid{1}, &out[i], i + 1);
    CHECK(contains(error_of([&] { batch.submit(Deadline::after(20ms)); }),
                   "packets of this batch are published"));
  };
  const auto check_failed = [&](Queue& queue) {
    CHECK(contains(error_of([&] { queue.wait(); }), reason));
    BatchSubmitter batch{queue};
    batch.raw(aql::to_packet(aql::BarrierAnd{}));
    CHECK(contains(error_of([&] { batch.submit(); }), reason));
  };
  SECTION("a queue of the library is stopped") {
    Queue queue{gpu, {.packets = 256, .drain_timeout = 20ms}};
    drop_part(queue);
    hsa_signal_store_screlease(gate.handle(), 0);
    check_failed(queue);
    CHECK(std::count(out.begin(), out.end(), 0u) == count);
  }
  SECTION("the packets of a borrowed queue keep their kernargs") {
    hsa_queue_t* handle = nullptr;
    REQUIRE(hsa_queue_create(gpu.handle(), 256, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, UINT32_MAX,
                             UINT32_MAX, &handle) == HSA_STATUS_SUCCESS);
    {
      Queue queue = Queue::borrow(gpu, handle, nullptr, {.drain_timeout = 20ms});
      drop_part(queue);
      check_failed(queue);
    }
    hsa_signal_store_screlease(gate.handle(), 0);
    {
      Queue after = Queue::borrow(gpu, handle);
      BatchSubmitter batch{after};
      batch.raw(aql::to_packet(aql::BarrierAnd{}));
      CHECK(batch.submit().wait(soon()));
    }
    const auto ran = static_cast<uint32_t>(count - std::count(out.begin(), out.end(), 0u));
    CHECK(ran > 0);
    for (uint32_t i = 0; i < count; ++i) CHECK(out[i] == (i < ran ? i + 1 : 0));
    CHECK(hsa_queue_destroy(handle) == HSA_STATUS_SUCCESS);
  }
}
