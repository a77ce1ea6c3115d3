// Prepared dispatches: the same packets and kernarg blocks as dispatches with kernel and grid.
#include <cstring>
#include <memory>
#include <random>
#include <tuple>
#include <vector>

#include <uptempo/program/metadata.hpp>
#include <uptempo/runtime/counters.hpp>
#include <uptempo/runtime/error.hpp>
#include "test/engine/double_device.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "tools/support/cost_meter.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;
using uptempo::test::contains;
using uptempo::test::error_of;

namespace {

using Several = Kernel<uint32_t, LocalBytes, double, LocalBytes>;

Several several_kernel() {
  return kernel_of<uint32_t, LocalBytes, double, LocalBytes>(
      {.name = "several",
       .object = 0x7700,
       .kernarg_bytes = 40,
       .arguments = {argument(ArgumentKind::by_value, 0, 4),
                     argument(ArgumentKind::dynamic_shared_pointer, 4, 4),
                     argument(ArgumentKind::by_value, 16, 8),
                     argument(ArgumentKind::dynamic_shared_pointer, 24, 4),
                     argument(ArgumentKind::hidden_block_count_x, 32, 4)},
       .group_segment_bytes = 20});
}

// The device's input: packets without addresses, and kernarg blocks.
struct Appended {
  std::vector<aql::Packet64> packets;
  std::vector<std::array<std::byte, 40>> blocks;
};

template <class Fill>
Appended seen(const Several& kernel, Fill&& fill) {
  DoubleDevice device({.device = {.ring_size = 64}});
  Appended all;
  BatchSubmitter batch(device.queue(), {});
  fill(batch, kernel);
  CHECK(batch.submit().wait(soon(), kActiveWait));
  for (const Completed& completed : device.processor().completed()) {
    aql::Packet64 packet = completed.packet;
    // The end of a part of a batch that is longer than the ring.
    if (aql::packet_type(packet.header()) == aql::PacketType::barrier_and) continue;
    std::memcpy(all.blocks.emplace_back().data(), packet.kernarg_address(), 40);
    packet.set_kernarg_address(nullptr);
    if (aql::packet_as<hsa_kernel_dispatch_packet_t>(packet).completion_signal.handle != 0)
      packet.set_completion_signal({1});
    all.packets.push_back(packet);
  }
  return all;
}

std::tuple<uint32_t, LocalBytes, double, LocalBytes> arguments_of(uint32_t i) noexcept {
  return {i, LocalBytes{4 * i}, 0.5 * i, LocalBytes{i % 7}};
}

}  // namespace

TEST_CASE("prepared dispatches equal those with kernel and grid, byte for byte", "[prepared]") {
  const Several kernel = several_kernel();
  const Grid grid = Grid{640, 2}.by(64, 2);
  for (const uint32_t count : {1u, 2u, 3u, 40u, 64u, 200u}) {
    CAPTURE(count);
    const Appended one_by_one = seen(kernel, [&](BatchSubmitter& batch, const Several& k) {
      for (uint32_t i = 0; i < count; ++i) {
        const auto [a, b, c, d] = arguments_of(i);
        batch.dispatch(k, grid, a, b, c, d);
      }
    });
    const Appended prepared = seen(kernel, [&](BatchSubmitter& batch, const Several& k) {
      const auto several = batch.prepare(k, grid);
      for (uint32_t i = 0; i < count; ++i)
        std::apply([&](auto... a) { several.dispatch(a...); }, arguments_of(i));
    });
    const Appended each = seen(kernel, [&](BatchSubmitter& batch, const Several& k) {
      batch.prepare(k, grid).dispatch_each(count, arguments_of);
    });
    REQUIRE(one_by_one.packets.size() == count);
    CHECK(prepared.packets == one_by_one.packets);
    CHECK(prepared.blocks == one_by_one.blocks);
    CHECK(each.packets == one_by_one.packets);
    CHECK(each.blocks == one_by_one.blocks);
  }
}

TEST_CASE("dispatches of all kinds run in the order of their calls", "[prepared]") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    std::vector<uint32_t> ran;
    DoubleDevice device({.device = {.ring_size = 32, .seed = seed}},
                        [&](uint32_t number) { ran.push_back(number); });
    const auto kernel = number_kernel();
    std::mt19937_64 random(seed);
    uint32_t number = 0;
    {
      auto batch = device.batch();
      const Prepared prepared = batch.prepare(kernel, Grid{64});
      for (int step = 0; step < 200; ++step) {
        switch (random() % 4) {
          case 0:
            batch.dispatch(kernel, Grid{128}, number++);
            break;
          case 1:
            prepared.dispatch(number++);
            break;
          case 2: {
            const auto count = static_cast<uint32_t>(random() % 40);
            prepared.dispatch_each(count,
                                   [&](uint32_t i) noexcept { return std::tuple(number + i); });
            number += count;
            break;
          }
          default:
            batch.submit(soon());
        }
      }
      REQUIRE(batch.submit(soon()).wait(soon(), kActiveWait));
    }
    REQUIRE(ran.size() == number);
    for (uint32_t i = 0; i < number; ++i) REQUIRE(ran[i] == i);
  }
}

TEST_CASE("a kernel without arguments needs no kernarg block", "[prepared]") {
  DoubleDevice device;
  const auto nothing =
      kernel_of<>({.name = "nothing", .object = 0x7700, .group_segment_bytes = 20});
  auto batch = device.batch();
  const Prepared prepared = batch.prepare(nothing, Grid{64});
  const Counters before = Counters::now();
  prepared.dispatch();
  prepared.dispatch_each(50, [](uint32_t) noexcept { return std::tuple<>(); });
  CHECK(batch.submit().wait(soon(), kActiveWait));
  CHECK((Counters::now() - before).kernarg_blocks == 0);
  const auto completed = device.processor().completed();
  REQUIRE(completed.size() == 51);
  for (const Completed& dispatch : completed) CHECK(dispatch.packet.kernarg_address() == nullptr);
}

TEST_CASE("dispatches that got a kernarg block stay in the batch when the next one gets none",
          "[prepared]") {
  std::vector<uint32_t> ran;
  DoubleDevice device({}, [&](uint32_t number) { ran.push_back(number); });  // 1,024 blocks in all
  BatchSubmitter batch(device.queue(), {.patience = 1ms});
  const auto prepared = batch.prepare(number_kernel(), Grid{64});
  const std::string message = error_of(
      [&] { prepared.dispatch_each(2000, [](uint32_t i) noexcept { return std::tuple(i); }); });
  CHECK(contains(message, "kernarg slab"));
  CHECK(batch.size() == 1024);
  CHECK(batch.submit(soon()).wait(soon(), kActiveWait));
  REQUIRE(ran.size() == 1024);
  for (uint32_t i = 0; i < 1024; ++i) CHECK(ran[i] == i);
  prepared.dispatch(7u);
  CHECK(batch.submit().wait(soon(), kActiveWait));
  CHECK(ran.back() == 7);
}

TEST_CASE("a kernel and grid that cannot run are refused when prepared", "[prepared]") {
  DoubleDevice device;
  auto batch = device.batch();
  CHECK(contains(error_of([&] { (void)batch.prepare(number_kernel(), Grid{4096}.by(2048)); }),
                 "2048"));
  CHECK(batch.size() == 0);
}

TEST_CASE("a batch keeps the code of its prepared dispatches", "[prepared]") {
  DoubleDevice device;
  std::weak_ptr<const KernelInfo> code;
  {
    auto batch = device.batch();
    const auto prepared = [&] {
      const auto kernel = number_kernel();
      code = kernel.shared_info();
      return batch.prepare(kernel, Grid{64});
    }();
    prepared.dispatch(1u);
    CHECK_FALSE(code.expired());
    CHECK(batch.submit().wait(soon(), kActiveWait));
  }
  CHECK(code.expired());
}

TEST_CASE("preparing a prepared dispatch again allocates nothing", "[prepared]") {
  DoubleDevice device;
  auto batch = device.batch();
  const auto kernel = number_kernel();
  (void)batch.prepare(kernel, Grid{64});
  (void)batch.prepare(kernel, Grid{128});
  CHECK(support::cost_of([&] { (void)batch.prepare(kernel, Grid{64}); }).allocations == 0);
}

TEST_CASE("a prepared dispatch accepts declarations, like any other", "[prepared]") {
  DoubleDevice device;
  auto batch = device.batch();
  const auto prepared = batch.prepare(number_kernel(), Grid{64});
  uint32_t a[3];
  for (uint32_t i = 0; i < 3; ++i) prepared.dispatch(i).writes(a + i, 1);
  CHECK(batch.submit().wait(soon(), kActiveWait));
  CHECK(contains(batch.explain(), "packet 1: no barrier bit"));
}

TEST_CASE("a function of arguments must be noexcept and return the kernel's arguments",
          "[prepared]") {
  const auto right = [](uint32_t i) noexcept { return std::tuple(i); };
  const auto may_throw = [](uint32_t i) { return std::tuple(i); };
  const auto others = [](uint32_t i) noexcept { return std::tuple(i, i); };
  STATIC_REQUIRE(ArgumentsOf<decltype(right), uint32_t>);
  STATIC_REQUIRE_FALSE(ArgumentsOf<decltype(may_throw), uint32_t>);
  STATIC_REQUIRE_FALSE(ArgumentsOf<decltype(others), uint32_t>);
}
