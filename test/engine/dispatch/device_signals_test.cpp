// The caller's signals in batches: who may destroy them when, and batches without packets.
#include <hsa/hsa_ext_amd.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/uptempo.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <uptempo/aql/amd_abi.hpp>
#include <uptempo/completion/lent_signal.hpp>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"
#include "test/support/soon.hpp"

using namespace uptempo;
using namespace std::chrono_literals;

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;
using uptempo::test::OnDevice;
using uptempo::test::soon;

}  // namespace

// The order of declarations that the header of BatchSubmitter::after() shows.
TEST_CASE_METHOD(OnDevice, "a caller's signal may be destroyed before the queues that use it",
                 "[dispatch]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto fill = program.kernel<uint32_t*, uint32_t>("fill");
  const PinnedBuffer<uint32_t> values{gpu, 2};
  SECTION("after the work") {
    Queue left{gpu}, right{gpu};
    BatchSubmitter first{left}, second{right};
    const Signal halo{SignalKind::interrupt, 1};
    first.dispatch(fill, Grid{1}, values.data(), 1u);
    first.complete_with(halo);
    second.after(halo);
    second.dispatch(fill, Grid{1}, values.data() + 1, 2u);
    first.submit();
    second.submit().wait();
  }
  SECTION("before the submissions, and before the work") {
    Queue left{gpu}, right{gpu};
    BatchSubmitter first{left, {.timing = Timing::batch}}, second{right};
    const Signal gate;
    first.after(gate);
    first.dispatch(fill, Grid{1}, values.data(), 1u);
    {
      const Signal halo;
      first.complete_with(halo);
      second.after(halo);
    }
    // ROCr would give these the memory of a destroyed one.
    std::vector<Signal> others(64);
    second.dispatch(fill, Grid{1}, values.data() + 1, 2u);
    const Completion set = first.submit(), end = second.submit();
    std::thread waiter([&] { set.wait(); });
    hsa_signal_store_screlease(gate.handle(), 0);
    CHECK(end.wait(soon()));
    waiter.join();
    CHECK(set.times().size() == 1);  // of the dispatch: a packet of wait() has none
    for (const Signal& other : others) CHECK(hsa_signal_load_scacquire(other.handle()) == 1);
  }
  SECTION("after a batch that is never submitted") {
    Queue left{gpu}, right{gpu};
    BatchSubmitter first{left}, second{right};
    const Signal halo;
    first.complete_with(halo);
    second.after(halo);
    second.clear();
    first.clear();
    first.dispatch(fill, Grid{1}, values.data(), 1u);
    first.submit().wait();
    second.dispatch(fill, Grid{1}, values.data() + 1, 2u);
    second.submit().wait();
    CHECK(hsa_signal_load_scacquire(halo.handle()) == 1);
  }
  CHECK(values[0] == 1);
  CHECK(values[1] == 2);
}

TEST_CASE_METHOD(OnDevice, "a shared queue keeps the signals of work that it gives up",
                 "[dispatch]") {
  SharedQueue shared{gpu, {.drain_timeout = 20ms}};
  const Signal gate;
  {
    Queue mine = shared.producer();
    BatchSubmitter batch{mine};
    const Signal inner, own;
    batch.after(gate);
    batch.after(inner);
    batch.complete_with(own);
    batch.submit();
    hsa_signal_store_screlease(inner.handle(), 0);
  }
  std::vector<Signal> others(64);
  hsa_signal_store_screlease(gate.handle(), 0);
  Queue other = shared.producer();
  BatchSubmitter batch{other};
  batch.raw(aql::to_packet(aql::BarrierAnd{}));
  CHECK(batch.submit().wait(soon()));
  for (const Signal& other_signal : others)
    CHECK(hsa_signal_load_scacquire(other_signal.handle()) == 1);
}

TEST_CASE_METHOD(OnDevice, "a batch without packets sets its completion signal", "[dispatch]") {
  Queue left{gpu, {.drain_timeout = 100ms}}, right{gpu, {.drain_timeout = 100ms}};
  BatchSubmitter first{left}, second{right};
  const auto submits = {+[](BatchSubmitter& batch) { return batch.submit(); },
                        +[](BatchSubmitter& batch) { return batch.submit(soon()); },
                        +[](BatchSubmitter& batch) { return *batch.try_submit(); }};
  for (const auto submit : submits) {
    const Signal halo;
    first.complete_with(halo);
    second.after(halo);
    const Completion set = submit(first);
    CHECK(first.size() == 0);
    CHECK(second.submit().wait(soon()));
    CHECK(set.wait(soon()));
    // Without a signal of the caller there is nothing to publish.
    CHECK(submit(first).value() == set.value());
  }
}

TEST_CASE_METHOD(OnDevice, "a queue whose signal is lent goes on with its others, and keeps one",
                 "[dispatch]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto empty = program.kernel<>("empty");
  const Signal gate;
  Queue queue{gpu, {.packets = 256, .publications = 2}};
  BatchSubmitter batch{queue};
  batch.after(gate);
  batch.dispatch(empty, Grid{64});
  const Completion done = batch.submit();
  batch.dispatch(empty, Grid{64});
  const Completion next = batch.submit();
  std::optional<detail::LentSignal> lent = detail::LentSignal::borrow(done);
  REQUIRE(lent);
  CHECK_FALSE(detail::LentSignal::borrow(next));  // the last one
  hsa_signal_store_screlease(gate.handle(), 0);
  REQUIRE(next.wait(soon()));
  for (int i = 0; i < 5; ++i) {
    batch.dispatch(empty, Grid{64});
    REQUIRE(batch.submit(soon()).wait(soon()));
    CHECK(aql::load_acquire(lent->signal()) == 0);
  }
  lent.reset();
  batch.dispatch(empty, Grid{64});
  CHECK(batch.submit(soon()).wait(soon()));
}

TEST_CASE_METHOD(OnDevice, "batches wait for and complete signals that HSA calls have created",
                 "[dispatch]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto chain = program.kernel<uint32_t*, uint32_t>("chain_increment");
  const PinnedBuffer<uint32_t> values{gpu, 1};
  values.data()[0] = 5;
  hsa_signal_t gate{}, halo{};
  REQUIRE(hsa_signal_create(1, 0, nullptr, &gate) == HSA_STATUS_SUCCESS);
  REQUIRE(hsa_signal_create(0, 0, nullptr, &halo) == HSA_STATUS_SUCCESS);
  {
    Queue left{gpu}, right{gpu};
    BatchSubmitter first{left}, second{right};
    first.after(gate);
    first.dispatch(chain, Grid{1}, values.data(), 1u);
    first.complete_with(halo);
    second.after(halo);
    second.dispatch(chain, Grid{1}, values.data(), 2u);
    first.submit();
    CHECK(hsa_signal_load_scacquire(halo) == 1);
    const Completion last = second.submit();
    CHECK_FALSE(last.wait(Deadline::after(20ms)));
    hsa_signal_store_screlease(gate, 0);
    REQUIRE(last.wait(soon()));
    CHECK(hsa_signal_load_scacquire(halo) == 0);
    CHECK(values.data()[0] == 3 * (3 * 5 + 1) + 2);
    CHECK(contains(error_of<Error>([&] { first.after(hsa_signal_t{0}); }), "the null signal"));
    CHECK(contains(error_of<Error>([&] { first.complete_with(hsa_signal_t{0}); }),
                   "the null signal"));
  }
  CHECK(hsa_signal_destroy(gate) == HSA_STATUS_SUCCESS);
  CHECK(hsa_signal_destroy(halo) == HSA_STATUS_SUCCESS);
}
