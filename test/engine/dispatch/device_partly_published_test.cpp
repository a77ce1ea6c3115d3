// Batches that their deadline cuts off, on a real HSA queue.
#include <uptempo/kernels/basics.hpp>
#include <uptempo/uptempo.hpp>

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

TEST_CASE_METHOD(OnDevice, "the published parts of a dropped batch run, and the rest does not",
                 "[dispatch]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto fill = program.kernel<uint32_t*, uint32_t>("fill");
  constexpr uint32_t count = 600;
  const PinnedBuffer<uint32_t> out{gpu, count};
  std::fill(out.begin(), out.end(), 0u);
  const Signal gate;
  Queue queue{gpu, {.packets = 256}};
  {
    BatchSubmitter batch{queue};
    batch.raw(aql::to_packet(aql::BarrierAnd{.dependencies = {gate.handle()}}));
    for (uint32_t i = 0; i < count; ++i) batch.dispatch(fill, Grid{1}, &out[i], i + 1);
    CHECK(contains(error_of([&] { batch.submit(Deadline::after(20ms)); }),
                   "254 of 601 packets of this batch are published"));
  }
  BatchSubmitter other{queue};
  other.raw(aql::to_packet(aql::BarrierAnd{}));
  hsa_signal_store_screlease(gate.handle(), 0);
  CHECK(other.submit(soon()).wait(soon()));
  for (uint32_t i = 0; i < count; ++i) CHECK(out[i] == (i < 253 ? i + 1 : 0));
}

TEST_CASE_METHOD(
    OnDevice, "the caller's signal is 1 from the first part on, and a busy one is refused before",
    "[dispatch]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto empty = program.kernel<>("empty");
  Queue queue{gpu, {.packets = 256}};
  const Signal gate, own(SignalKind::interrupt, 0);
  BatchSubmitter batch{queue};
  const auto fill = [&] {
    batch.raw(aql::to_packet(aql::BarrierAnd{.dependencies = {gate.handle()}}));
    for (uint32_t i = 0; i < 600; ++i) batch.dispatch(empty, Grid{64});
    batch.complete_with(own);
  };
  fill();
  CHECK(contains(error_of([&] { batch.submit(Deadline::after(20ms)); }), "254 of 601 packets"));
  CHECK(hsa_signal_load_scacquire(own.handle()) == 1);
  hsa_signal_store_screlease(gate.handle(), 0);
  const Completion done = batch.submit(soon());
  CHECK(done.wait(soon()));
  CHECK(hsa_signal_load_scacquire(own.handle()) == 0);

  hsa_signal_store_screlease(gate.handle(), 1);
  batch.raw(aql::to_packet(aql::BarrierAnd{.dependencies = {gate.handle()}}));
  batch.complete_with(own);
  const Completion first = batch.submit();
  fill();
  const Completion before = queue.last_submitted();
  CHECK(contains(error_of([&] { batch.submit(soon()); }), "still uses it"));
  CHECK(queue.last_submitted() == before);
  hsa_signal_store_screlease(gate.handle(), 0);
  CHECK(first.wait(soon()));
  CHECK(batch.submit(soon()).wait(soon()));
}
