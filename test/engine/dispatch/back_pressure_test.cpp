// Submissions when the ring, the timeline or a pool is full: refusals, deadlines, and batches that
// are partly published. Against the packet processor double.
#include <hsa/hsa.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <uptempo/aql/packet.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>
#include "test/engine/double_device.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;
using aql::FenceScope;

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;

}  // namespace

TEST_CASE("a batch interrupted by its deadline continues where it stopped", "[submit]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({.device = {.ring_size = 16, .paused = true}},
                      [&](uint32_t number) { ran.push_back(number); });
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {});
  for (uint32_t i = 0; i < 40; ++i) batch.dispatch(kernel, Grid{1}, i);
  const std::string error = error_of<Error>([&] { batch.submit(Deadline::after(20ms)); });
  CHECK(contains(error, "16 slots"));
  CHECK(contains(error, "14 of 40 packets of this batch are published"));
  device.processor().resume();
  CHECK(batch.submit(soon()).wait(soon(), kActiveWait));
  REQUIRE(ran.size() == 40);
  for (uint32_t i = 0; i < 40; ++i) CHECK(ran[i] == i);
}

TEST_CASE("a partly published batch takes no packet and lets other batches pass", "[submit]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({.device = {.ring_size = 16, .paused = true}},
                      [&](uint32_t number) { ran.push_back(number); });
  const auto kernel = number_kernel();
  BatchSubmitter cut_off(device.queue(), {});
  for (uint32_t i = 0; i < 40; ++i) cut_off.dispatch(kernel, Grid{1}, i);
  CHECK(error_of<Error>([&] { cut_off.submit(Deadline::after(10ms)); }) != "no error");
  CHECK(contains(error_of<Error>([&] { cut_off.dispatch(kernel, Grid{1}, 40u); }),
                 "are already published"));
  CHECK(contains(error_of<Error>([&] { cut_off.raw(aql::to_packet(aql::BarrierAnd{})); }),
                 "are already published"));
  BatchSubmitter other(device.queue(), {});
  other.dispatch(kernel, Grid{1}, 41u);
  device.processor().resume();
  CHECK(other.submit(soon()).wait(soon(), kActiveWait));
  CHECK(cut_off.submit(soon()).wait(soon(), kActiveWait));
  REQUIRE(ran.size() == 41);
  CHECK(ran[14] == 41);
  std::erase(ran, 41u);
  for (uint32_t i = 0; i < 40; ++i) CHECK(ran[i] == i);
}

TEST_CASE("a batch that is interrupted and then dropped returns everything", "[submit]") {
  DoubleDevice device({.device = {.ring_size = 16, .paused = true}});
  const auto kernel = number_kernel();
  const uint32_t slabs = device.queue().pressure().kernarg_slabs.free();
  const uint32_t signals = device.queue().pressure().signals.free();
  const uint32_t timing_signals = device.queue().pressure().timing_signals.free();
  const Timing timing = GENERATE(Timing::none, Timing::each);
  const bool is_done = GENERATE(false, true);
  CAPTURE(timing, is_done);
  const Counters before = Counters::now();
  {
    BatchSubmitter batch(device.queue(), {.timing = timing});
    for (uint32_t i = 0; i < 20; ++i) batch.dispatch(kernel, Grid{1}, i);
    CHECK(error_of<Error>([&] { batch.submit(Deadline::after(10ms)); }) != "no error");
    if (!is_done) batch.clear();
    device.processor().resume();
    REQUIRE(device.queue().last_submitted().wait(soon(), kActiveWait));
    if (is_done) device.queue().reclaim();
  }
  const Counters spent = Counters::now() - before;
  CHECK(spent.packets == 16);  // 14, and one that ends each part
  CHECK(spent.batches == 0);
  device.queue().reclaim();
  CHECK(device.queue().pressure().kernarg_slabs.free() == slabs);
  CHECK(device.queue().pressure().signals.free() == signals);
  CHECK(device.queue().pressure().timing_signals.free() == timing_signals);
  CHECK(device.processor().completed_count() == 16);
}

TEST_CASE("the first packet of a later part follows batches that have passed", "[submit]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({.device = {.ring_size = 16, .paused = true}},
                      [&](uint32_t number) { ran.push_back(number); });
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {});
  for (uint32_t i = 0; i < 40; ++i) batch.dispatch(kernel, Grid{1}, i).touches_nothing();
  CHECK(error_of<Error>([&] { batch.submit(Deadline::after(1ms)); }) != "no error");
  BatchSubmitter other(device.queue(), {});
  other.dispatch(kernel, Grid{1}, 100u);
  device.processor().resume();
  CHECK(other.submit(soon()).wait(soon(), kActiveWait));
  CHECK(batch.submit(soon()).wait(soon(), kActiveWait));
  const auto packets = device.processor().completed();
  const auto barrier = [&](uint64_t index) {
    const auto packet = std::ranges::find(packets, index, &Completed::index);
    REQUIRE(packet != packets.end());
    return aql::header_flags(packet->packet.header()).barrier == aql::Barrier::on;
  };
  CHECK(barrier(16));  // the other batch
  CHECK(barrier(8));   // after the first part
  CHECK_FALSE(barrier(9));
  CHECK(barrier(17));  // after the other batch
  CHECK_FALSE(barrier(18));
  CHECK(ran.size() == 41);
}

TEST_CASE("a batch whose queue fails between two parts keeps nothing", "[submit]") {
  DoubleDevice device({.device = {.ring_size = 16, .paused = true}});
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {});
  for (uint32_t i = 0; i < 40; ++i) batch.dispatch(kernel, Grid{1}, i);
  CHECK(error_of<Error>([&] { batch.submit(Deadline::after(1ms)); }) != "no error");
  CHECK(batch.size() == 40);
  device.processor().fail(HSA_STATUS_ERROR_INVALID_ISA);
  CHECK(contains(error_of<Error>([&] { batch.submit(soon()); }), "INVALID_ISA"));
  CHECK(batch.size() == 0);
}

TEST_CASE("the published parts of a dropped batch keep their kernargs", "[submit]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({.device = {.ring_size = 16, .paused = true},
                       .queue = {.kernarg_bytes = 8192, .kernarg_slab_bytes = 1024}},
                      [&](uint32_t number) { ran.push_back(number); });
  const auto kernel = number_kernel();
  {
    BatchSubmitter batch(device.queue(), {});
    for (uint32_t i = 0; i < 40; ++i) batch.dispatch(kernel, Grid{1}, i);
    CHECK(error_of<Error>([&] { batch.submit(Deadline::after(1ms)); }) != "no error");
  }
  BatchSubmitter other(device.queue(), {});
  // As many as there are blocks.
  for (uint32_t i = 0; other.try_dispatch(kernel, Grid{1}, 1000 + i); ++i) {
  }
  other.clear();
  device.processor().resume();
  CHECK(device.queue().last_submitted().wait(soon(), kActiveWait));
  REQUIRE(ran.size() == 14);
  for (uint32_t i = 0; i < 14; ++i) CHECK(ran[i] == i);
  device.queue().reclaim();
}

TEST_CASE("a full ring refuses a try, and the batch can be submitted later unchanged", "[submit]") {
  DoubleDevice device({.device = {.ring_size = 32, .paused = true}});
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {});
  for (uint32_t i = 0; i < 24; ++i) batch.dispatch(kernel, Grid{1}, i);
  CHECK(batch.try_submit().has_value());
  for (uint32_t i = 0; i < 12; ++i) batch.dispatch(kernel, Grid{1}, i);
  CHECK_FALSE(batch.try_submit().has_value());
  CHECK(batch.size() == 12);
  const std::string error = error_of<Error>([&] { batch.submit(Deadline::after(5ms)); });
  CHECK(contains(error, "run of 12 slots in the ring"));
  CHECK(contains(error, "24 are in use"));
  device.processor().resume();
  CHECK(batch.submit(soon()).wait(soon(), kActiveWait));
}

TEST_CASE("a refused batch takes more packets, and only its final ends carry the outer fences",
          "[submit]") {
  for (const bool said : {false, true}) {
    DoubleDevice device({.device = {.ring_size = 32, .paused = true}});
    const auto kernel = number_kernel();
    BatchSubmitter batch(device.queue(), {});
    for (uint32_t i = 0; i < 24; ++i) batch.dispatch(kernel, Grid{1}, i);
    CHECK(batch.try_submit().has_value());
    for (uint32_t i = 0; i < 12; ++i) batch.dispatch(kernel, Grid{1}, i);
    CHECK_FALSE(batch.try_submit().has_value());
    for (uint32_t i = 0; i < 3; ++i) batch.dispatch(kernel, Grid{1}, i);
    if (said) batch.dispatch(kernel, Grid{1}, 3u).observed_by(Observer::system);
    device.processor().resume();
    CHECK(batch.submit(soon()).wait(soon(), kActiveWait));
    const auto packets = device.processor().completed();
    const size_t end = said ? 40 : 39;
    REQUIRE(packets.size() == end);
    for (size_t i = 24; i < end; ++i) {
      CAPTURE(said, i);
      const auto flags = aql::header_flags(packets[i].packet.header());
      CHECK(flags.acquire == (i == 24 ? FenceScope::system : FenceScope::agent));
      CHECK(flags.release == (i + 1 == end ? FenceScope::system : FenceScope::agent));
      CHECK((dispatch_of(packets[i]).completion_signal.handle != 0) == (i + 1 == end));
    }
  }
}

TEST_CASE("the error of a full timeline or an empty signal pool names size and occupancy",
          "[submit]") {
  const auto kernel = number_kernel();
  SECTION("timeline") {
    DoubleDevice device(
        {.device = {.ring_size = 64, .paused = true},
         .queue = {
             .packets = 64, .publications = 2, .kernarg_bytes = 8192, .kernarg_slab_bytes = 1024}});
    BatchSubmitter batch(device.queue(), {.patience = 5ms});
    for (int i = 0; i < 2; ++i) {
      batch.dispatch(kernel, Grid{1}, 0);
      batch.submit();
    }
    batch.dispatch(kernel, Grid{1}, 0);
    const std::string error = error_of<Error>([&] { batch.submit(); });
    CHECK(contains(error, "2 publications: 2 publications are unfinished"));
    device.processor().resume();
    CHECK(batch.submit(soon()).wait(soon(), kActiveWait));
  }
  SECTION("signals") {
    DoubleDevice device({.device = {.ring_size = 64, .paused = true}, .signals = 1});
    BatchSubmitter batch(device.queue(), {.patience = 5ms});
    batch.dispatch(kernel, Grid{1}, 0);
    batch.submit();
    batch.dispatch(kernel, Grid{1}, 0);
    CHECK(
        contains(error_of<Error>([&] { batch.submit(); }), "a free completion signal: 1 signals"));
    device.processor().resume();
    CHECK(batch.submit(soon()).wait(soon(), kActiveWait));
  }
}

TEST_CASE(
    "without free kernarg blocks a try refuses, a wait is served, and a hopeless wait fails at "
    "once",
    "[submit]") {
  DoubleDevice device(
      {.device = {.ring_size = 64, .paused = true},
       .queue = {
           .packets = 64, .publications = 16, .kernarg_bytes = 2048, .kernarg_slab_bytes = 1024}});
  const auto kernel = number_kernel();
  BatchSubmitter batch(device.queue(), {.patience = kHang});
  for (uint32_t i = 0; i < 32; ++i) batch.dispatch(kernel, Grid{1}, i);
  CHECK_FALSE(batch.try_dispatch(kernel, Grid{1}, 0).has_value());
  // No work in flight can return blocks, so no wait can help.
  const auto start = std::chrono::steady_clock::now();
  CHECK(contains(error_of<Error>([&] { batch.dispatch(kernel, Grid{1}, 0); }),
                 "2 slabs of 1024 bytes"));
  CHECK(std::chrono::steady_clock::now() - start < kHang / 2);
  batch.submit();
  device.processor().resume();
  batch.dispatch(kernel, Grid{1}, 7);  // waits for the first publication
  CHECK(batch.submit().wait(soon(), kActiveWait));
}

TEST_CASE("a processor that frees slots in groups of eight stops no batch", "[submit]") {
  const auto kernel = number_kernel();
  for (const uint32_t odd : {1u, 3u, 7u}) {
    CAPTURE(odd);
    std::vector<uint32_t> ran, expected;
    DoubleDevice device({.device = {.ring_size = 64, .read_index_step = 8}},
                        [&](uint32_t number) { ran.push_back(number); });
    BatchSubmitter batch(device.queue(), {});
    for (const uint32_t count : {odd, 55u, 56u, 57u, 63u, 64u, 65u, 200u}) {
      for (uint32_t i = 0; i < count; ++i) {
        batch.dispatch(kernel, Grid{1}, i);
        expected.push_back(i);
      }
      REQUIRE(batch.submit(soon()).wait(soon(), kActiveWait));
    }
    CHECK(ran == expected);
  }
}
