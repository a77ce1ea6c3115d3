// The engine's part of the invariants. Each test fails under its patch in test/mutants.
#include <hsa/hsa.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <uptempo/runtime/error.hpp>
#include "test/engine/double_device.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/hsa_double.hpp"
#include "tools/support/cost_meter.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;
using uptempo::support::Cost;
using uptempo::support::cost_of;

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;

}  // namespace

TEST_CASE("Invariant 4: kernarg blocks are not reused before their dispatch has completed",
          "[invariant]") {
  // The read index passes packets at launch, kernels stay active for long, and blocks are scarce.
  // An engine that frees a block before completion, for example at the read index, overwrites
  // arguments that a kernel reads later.
  std::vector<uint32_t> ran;
  DoubleDevice device({.device = {.ring_size = 64, .early_read_index = true},
                       .queue = {.packets = 64,
                                 .publications = 16,
                                 .kernarg_bytes = 512,
                                 .kernarg_slab_bytes = 128}},
                      [&](uint32_t number) { ran.push_back(number); });
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {});
  for (uint32_t i = 0; i < 600; ++i) {
    batch.dispatch(kernel, Grid{1}, i);
    if (i % 3 != 1) batch.submit();
  }
  CHECK(batch.submit().wait(soon(), kActiveWait));
  REQUIRE(ran.size() == 600);
  for (uint32_t i = 0; i < 600; ++i) {
    if (ran[i] != i) FAIL("dispatch " << i << " read the arguments of " << ran[i]);
  }
}

TEST_CASE("Invariant 4: a signal is not reused before its publication has completed",
          "[invariant]") {
  DoubleDevice device({.device = {.ring_size = 64, .early_read_index = true}, .signals = 2});
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {});
  // No packet after the gate can complete while the host holds the gate at 1, however the threads
  // are scheduled.
  SignalDouble gate(1);
  batch.raw(aql::to_packet(aql::BarrierAnd{.dependencies = {gate.handle()}}));
  std::vector<Completion> held;
  for (uint32_t i = 0; i < 2; ++i) {
    batch.dispatch(kernel, Grid{1}, i);
    held.push_back(batch.submit());
  }
  for (uint32_t i = 2; i < 5; ++i) {
    batch.dispatch(kernel, Grid{1}, i);
    CHECK(contains(error_of([&] { batch.submit(Deadline::after(5ms)); }),
                   "a free completion signal"));
  }
  for (const Completion& completion : held) CHECK_FALSE(completion.ready());
  for (const SignalDouble& signal : device.signals()) CHECK(signal.value() == 1);

  hsa_signal_store_screlease(gate.handle(), 0);
  REQUIRE(batch.submit(soon()).wait(soon(), kActiveWait));
  for (const Completion& completion : held) CHECK(completion.ready());
  // 0: of a publication that has not been reclaimed. 1: free. A signal that two packets decrement
  // ends below 0.
  for (const SignalDouble& signal : device.signals())
    CHECK((signal.value() == 0 || signal.value() == 1));
}

TEST_CASE(
    "Invariant 4: the slot of a kernel that reads its packet is in use until it has completed",
    "[invariant]") {
  // The processor launches the first kernel, advances the read index, and stops. The kernel stays
  // active.
  for (const bool reads_packet : {false, true}) {
    CAPTURE(reads_packet);
    PacketProcessor* stopped = nullptr;
    std::vector<uint32_t> ran;
    DoubleDevice device({.device = {.ring_size = 64,
                                    .early_read_index = true,
                                    .paused = true,
                                    .reads_packet = kReadsPacket,
                                    .duration =
                                        [&](const hsa_kernel_dispatch_packet_t&) {
                                          if (stopped != nullptr) stopped->pause();
                                          return 8u;
                                        }}},
                        [&](uint32_t number) { ran.push_back(number); });
    stopped = &device.processor();
    const auto plain = number_kernel();
    BatchSubmitter first(device.queue(), {}), others(device.queue(), {});
    first.dispatch(reads_packet ? late_reader() : plain, Grid{1}, 0u);
    first.submit();
    device.processor().resume();
    REQUIRE(eventually([&] {
      return device.processor().paused() && device.processor().memory().read_index().load() == 1;
    }));
    // In two batches: a try takes at most 56 slots of a ring of 64.
    for (uint32_t i = 1; i < 64; ++i) {
      others.dispatch(plain, Grid{1}, i);
      if (i == 32 || i == 63) REQUIRE(others.try_submit());
    }
    REQUIRE(others.size() == 0);
    REQUIRE(device.processor().memory().write_index().load() == 64);
    others.dispatch(plain, Grid{1}, 64u);
    if (reads_packet) {
      CHECK_FALSE(others.try_submit());
      REQUIRE(others.size() == 1);
      CHECK(device.queue().pressure().ring.in_use == 64);
      CHECK(contains(error_of([&] { others.submit(Deadline::after(1ms)); }), "64 are in use"));
    } else {
      CHECK(others.try_submit());
    }
    stopped = nullptr;
    device.processor().resume();
    REQUIRE(others.submit(soon()).wait(soon(), kActiveWait));
    REQUIRE(ran.size() == 65);
    for (uint32_t i = 0; i < 65; ++i) CHECK(ran[i] == i);
  }
}

TEST_CASE("Invariant 4: a queue and the memory its kernels use are destroyed after its work",
          "[invariant]") {
  std::atomic<uint32_t> ran{0};
  DoubleDevice device({.device = {.ring_size = 64, .duration = [](const auto&) { return 200u; }}},
                      [&](uint32_t) { ++ran; });
  const auto kernel = number_kernel();
  {
    BatchSubmitter batch(device.queue(), {});
    for (uint32_t i = 0; i < 8; ++i) batch.dispatch(kernel, Grid{1}, i);
    batch.submit();
  }
  device.destroy_queue();
  CHECK(ran == 8);
}

TEST_CASE(
    "Invariant 5: completion covers a long kernel without barrier bit before a short last one",
    "[invariant]") {
  std::atomic<bool> long_one_ended{false};
  DoubleDevice device(
      {.device = {.ring_size = 64,
                  .duration =
                      [](const hsa_kernel_dispatch_packet_t& packet) {
                        return *static_cast<const uint32_t*>(packet.kernarg_address) == 1 ? 5000u
                                                                                          : 1u;
                      }}},
      [&](uint32_t number) {
        if (number == 1) long_one_ended = true;
      });
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {});
  batch.dispatch(kernel, Grid{1}, 0);
  batch.dispatch(kernel, Grid{1}, 1).without_barrier();
  batch.dispatch(kernel, Grid{1}, 2)
      .fences(aql::FenceScope::none, aql::FenceScope::none)
      .without_barrier();
  CHECK(batch.submit().wait(soon(), kActiveWait));
  CHECK(long_one_ended);
  const auto last = device.processor().completed().back();
  CHECK(last.index == 2);
  CHECK(aql::header_flags(last.packet.header()).release == aql::FenceScope::system);
}

TEST_CASE("Invariant 8: a queue error ends every pending completion and refuses later submissions",
          "[invariant]") {
  DoubleDevice device({.device = {.ring_size = 64, .paused = true}});
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {});
  device.processor().resume();
  batch.dispatch(kernel, Grid{1}, 0);
  const Completion before = batch.submit();
  REQUIRE(before.wait(soon(), kActiveWait));
  device.processor().pause();

  std::vector<Completion> pending;
  for (uint32_t i = 0; i < 3; ++i) {
    batch.dispatch(kernel, Grid{1}, i);
    pending.push_back(batch.submit());
  }
  std::array<std::string, 6> outcome;
  std::vector<std::thread> waiters;
  for (size_t t = 0; t < outcome.size(); ++t) {
    waiters.emplace_back([&, t] {
      const WaitPolicy mode = t % 3 == 0   ? WaitPolicy::active()
                              : t % 3 == 1 ? WaitPolicy::blocked()
                                           : WaitPolicy{};
      outcome[t] = error_of([&] {
        if (!pending[t / 2].wait(soon(), mode)) throw std::runtime_error("timed out");
      });
    });
  }
  std::this_thread::sleep_for(20ms);
  device.processor().fail(static_cast<hsa_status_t>(HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION));
  for (std::thread& waiter : waiters) waiter.join();
  for (const std::string& text : outcome)
    CHECK(contains(text, "HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION"));

  CHECK(before.ready());  // completed before the error and stays complete
  CHECK(contains(error_of([&] { (void)pending[0].ready(); }),
                 "HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION"));
  batch.dispatch(kernel, Grid{1}, 9);
  const uint64_t index = device.state().writer().next_index();
  CHECK(contains(error_of([&] { batch.submit(); }), "this one takes no more work"));
  CHECK(device.state().writer().next_index() == index);
}

TEST_CASE(
    "Invariant 9: in steady state a batch allocates nothing and calls neither the kernel nor HSA",
    "[invariant]") {
  for (const auto doorbell : {AMD_SIGNAL_KIND_DOORBELL, AMD_SIGNAL_KIND_USER}) {
    DoubleDevice device({.device = {.ring_size = 256, .doorbell_kind = doorbell}});
    // More kernels than the cache of shapes holds, and grids that change.
    std::vector<Kernel<uint32_t>> kernels;
    for (int i = 0; i < 40; ++i) kernels.push_back(number_kernel());
    BatchSubmitter batch(device.queue(), {});
    const auto round = [&] {
      for (uint32_t i = 0; i < 50; ++i) batch.dispatch(kernels[i % 40], Grid{1 + i % 3}, i);
      return batch.submit(Deadline::never());
    };
    for (int warm_up = 0; warm_up < 40; ++warm_up) (void)round().wait(soon(), kActiveWait);
    hsa_calls().reset();
    Cost total;
    for (int n = 0; n < 200; ++n) {
      Completion completion;
      total += cost_of([&] { completion = round(); });
      REQUIRE(completion.wait(soon(), kActiveWait));
    }
    CHECK(total.allocations == 0);
    CHECK(total.system_calls == 0);
    CHECK(total.locks == 0);
    // A doorbell that is not a hardware one is rung through HSA, and that is the only call.
    CHECK(hsa_calls().signal_store == (doorbell == AMD_SIGNAL_KIND_USER ? 200 : 0));
    CHECK(hsa_calls().total() == hsa_calls().signal_store);
  }
}

TEST_CASE("Invariant 10: a submission costs the same whatever queues and past batches exist",
          "[invariant]") {
  const auto kernel = number_kernel();
  std::vector<std::unique_ptr<DoubleDevice>> others;
  for (int i = 0; i < 24; ++i) {
    others.push_back(
        std::make_unique<DoubleDevice>(DoubleOptions{.device = {.ring_size = 64, .paused = true}}));
    BatchSubmitter batch(others.back()->queue(), {});
    batch.dispatch(kernel, Grid{1}, 1);
    batch.submit();
  }
  DoubleDevice device({.device = {.ring_size = 64}});
  BatchSubmitter batch(device.queue(), {});
  for (int warm_up = 0; warm_up < 40; ++warm_up) {
    batch.dispatch(kernel, Grid{1}, 1);
    (void)batch.submit().wait(soon(), kActiveWait);
  }
  device.queue().reclaim();
  // Twelve batches complete and are not yet reclaimed.
  device.processor().pause();
  Completion last;
  for (int i = 0; i < 12; ++i) {
    batch.dispatch(kernel, Grid{1}, 1);
    last = batch.submit();
  }
  device.processor().resume();
  REQUIRE(last.wait(soon(), kActiveWait));
  REQUIRE(device.state().timeline().pending() == 12);
  batch.dispatch(kernel, Grid{1}, 1);
  const Cost cost = cost_of([&] { last = batch.submit(Deadline::never()); });
  CHECK(device.state().timeline().pending() == 11);  // two reclaimed, one begun: not all twelve
  CHECK(cost.locks == 0);
  REQUIRE(last.wait(soon(), kActiveWait));
  for (auto& other : others) other->processor().resume();
}
