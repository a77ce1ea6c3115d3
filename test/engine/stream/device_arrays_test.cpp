// Launchers that copy host arrays in and out, on a device.
#include <uptempo/kernels/basics.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/on_device.hpp"
#include "tools/support/cost_meter.hpp"

using namespace uptempo;

namespace {

struct ArrayDevice : test::OnDevice {
  Program basics{gpu, builtin_kernels::basics()};
  Kernel<float*, const float*, const float*, uint32_t> add =
      basics.kernel<float*, const float*, const float*, uint32_t>("vector_add");
  Kernel<float*, const float*, float, uint32_t> saxpy =
      basics.kernel<float*, const float*, float, uint32_t>("saxpy");
  Kernel<uint32_t*, uint32_t> chain = basics.kernel<uint32_t*, uint32_t>("chain_increment");
  Copier copier{gpu};
};

std::vector<float> numbers(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> out(count);
  std::ranges::generate(out, [&] { return static_cast<float>(random() % 1000); });
  return out;
}

}  // namespace

TEST_CASE("arrays of the host are copied in before a launch and out after it",
          "[device][launcher][arrays]") {
  ArrayDevice device;
  Streams streams(device.gpu);
  Stream stream(streams);
  Launcher add(streams, device.add, 8);
  // Larger and smaller: scratch memory grows, and is kept.
  for (const uint32_t count : {1u, 1000u, 100u, 3000u, 200'000u, 5000u, 3'000'000u}) {
    CAPTURE(count);
    const std::vector<float> a = numbers(count, 1), b = numbers(count, 2);
    std::vector<float> sum(count, -1), expected(count);
    std::ranges::transform(a, b, expected.begin(), std::plus<>());
    add.launch(stream, Grid{count}, out(sum), in(a), in(std::span(b)), count);
    CHECK(sum == expected);
  }
  Launcher chain(streams, device.chain, 8);
  std::vector<uint32_t> values{1, 2, 3};
  chain.launch(stream, Grid{3}, in_out(values), 5u);
  CHECK(values == std::vector<uint32_t>{8, 11, 14});
  chain.launch(stream, Grid{2}, in_out(std::span(values).subspan(1)), 1u);
  CHECK(values == std::vector<uint32_t>{8, 34, 43});
}

TEST_CASE("the caller may change an input array when the call returns",
          "[device][launcher][arrays]") {
  ArrayDevice device;
  Streams streams(device.gpu);
  std::deque<Stream> all;
  for (int i = 0; i < 3; ++i) all.emplace_back(streams);
  for (const uint32_t count : {64u, 8'000u, 40'000u}) {
    DeviceBuffer<float> y(device.gpu, count);
    std::vector<float> expected(count, 0.0f), x(count);
    device.copier.copy(y, expected);
    Launcher saxpy(streams, device.saxpy, 8);
    // The handle's use of its scratch memory orders the launches, whatever their streams.
    for (uint32_t i = 0; i < 24; ++i) {
      x = numbers(count, i);
      saxpy.launch(all[i * 7 % 5 % all.size()], Grid{count}, y.data(), in(x), 2.0f, count);
      for (uint32_t k = 0; k < count; ++k) expected[k] += 2.0f * x[k];
      std::ranges::fill(x, -1.0f);
    }
    for (Stream& stream : all) stream.synchronize();
    std::vector<float> result(count);
    device.copier.copy(result, y);
    CHECK(result == expected);
  }
}

TEST_CASE("a launch with input arrays only does not block, even if the stream has not begun",
          "[device][launcher][arrays]") {
  ArrayDevice device;
  Streams streams(device.gpu);
  Stream stream(streams);
  Launcher saxpy(streams, device.saxpy, 8);
  constexpr uint32_t count = 1000;
  std::vector<float> expected(count, 0.0f);
  const DeviceBuffer<float> y(device.gpu, count);
  device.copier.copy(y, expected);
  const Signal gate;
  stream.after(gate);
  for (uint32_t i = 0; i < 20; ++i) {
    const std::vector<float> x = numbers(count, i);
    saxpy.launch(stream, Grid{count}, y.data(), in(x), 1.0f, count);
    for (uint32_t k = 0; k < count; ++k) expected[k] += x[k];
  }
  CHECK_FALSE(stream.ready());
  hsa_signal_store_screlease(gate.handle(), 0);
  stream.synchronize();
  std::vector<float> result(count);
  device.copier.copy(result, y);
  CHECK(result == expected);
}

TEST_CASE("a stream that takes over a handle runs after the previous one, even a destroyed one",
          "[device][launcher][arrays]") {
  ArrayDevice device;
  Streams streams(device.gpu, {.hardware_queues = 3});
  Launcher chain(streams, device.chain, 8);
  constexpr uint32_t count = 4096;
  std::vector<uint32_t> values(count, 1), expected = values;
  for (uint32_t i = 0; i < 30; ++i) {
    auto stream = std::make_unique<Stream>(streams);
    Stream other(streams);
    // Input only: in flight when the stream is destroyed.
    const std::vector<uint32_t> dummy(count, i);
    chain.launch(*stream, Grid{count}, in(dummy), i);
    stream.reset();
    chain.launch(other, Grid{count}, in_out(values), i);
    for (uint32_t& value : expected) value = value * 3 + i;
    REQUIRE(values == expected);
  }
}

TEST_CASE("in steady state input arrays cost no heap, and no packets except those of their copies",
          "[device][launcher][arrays][cost]") {
  ArrayDevice device;
  Streams streams(device.gpu);
  Stream stream(streams);
  Launcher saxpy(streams, device.saxpy, 8);
  constexpr uint32_t count = 256, launches = 20;
  const std::vector<float> x = numbers(count, 1);
  const DeviceBuffer<float> y(device.gpu, count);
  device.copier.copy(y, std::span<const float>(std::vector<float>(count)));
  const auto step = [&] {
    for (uint32_t i = 0; i < launches; ++i)
      saxpy.launch(stream, Grid{count}, y.data(), in(x), 2.0f, count);
  };
  for (int i = 0; i < 10; ++i) {
    step();
    stream.synchronize();
  }
  const Counters before = Counters::now();
  const support::Cost cost = support::cost_of(step);
  const Counters spent = Counters::now() - before;
  CHECK(cost.allocations == 0);
  CHECK(spent.packets == 2 * launches);
  CHECK(spent.host_waits == 0);
  CHECK(spent.argument_hits == launches);
  stream.synchronize();
}

TEST_CASE(
    "in steady state arrays cost no memory, pin or signal, and only output arrays cost a wait",
    "[device][launcher][arrays][cost]") {
  ArrayDevice device;
  Streams streams(device.gpu);
  Stream stream(streams);
  Launcher add(streams, device.add, 8);
  for (const uint32_t count : {256u, 50'000u}) {
    const std::vector<float> a = numbers(count, 1), b = numbers(count, 2);
    std::vector<float> sum(count);
    const auto step = [&] { add.launch(stream, Grid{count}, out(sum), in(a), in(b), count); };
    for (int i = 0; i < 20; ++i) step();
    const Counters before = Counters::now();
    constexpr int steps = 10;
    for (int i = 0; i < steps; ++i) step();
    const Counters spent = Counters::now() - before;
    CAPTURE(count);
    CHECK(spent.memory_allocations == 0);
    CHECK(spent.signals_created == 0);
    CHECK(spent.pins == 0);
    CHECK(spent.host_waits <= steps);
    CHECK(spent.argument_hits == steps);
    CHECK(spent.argument_misses == 0);
    CHECK(sum[count - 1] == a[count - 1] + b[count - 1]);
  }
}

TEST_CASE("a launcher without arrays has no scratch memory", "[device][launcher][arrays]") {
  ArrayDevice device;
  Streams streams(device.gpu);
  Stream stream(streams);
  const DeviceBuffer<uint32_t> values(device.gpu, 64);
  device.copier.copy(values, std::span<const uint32_t>(std::vector<uint32_t>(64)));
  stream.launch(device.chain, Grid{64}, values.data(), 1u);  // the stream's own resources
  const Counters before = Counters::now();
  {
    Launcher chain(streams, device.chain, 8);
    for (uint32_t i = 0; i < 100; ++i) chain.launch(stream, Grid{64}, values.data(), i / 10);
    stream.synchronize();
  }
  const Counters spent = Counters::now() - before;
  CHECK(spent.memory_allocations == spent.kernarg_allocations);
  CHECK(spent.kernarg_allocations == 1);
  CHECK(spent.bytes_to_device + spent.bytes_to_host + spent.bytes_staged == 0);
}

TEST_CASE("a handle is destroyed while its arrays are in use", "[device][launcher][arrays]") {
  ArrayDevice device;
  Streams streams(device.gpu);
  Stream stream(streams);
  constexpr uint32_t count = 20'000;
  const DeviceBuffer<float> y(device.gpu, count);
  std::vector<float> expected(count, 0.0f);
  device.copier.copy(y, expected);
  for (uint32_t i = 0; i < 20; ++i) {
    const std::vector<float> x = numbers(count, i);
    Launcher(streams, device.saxpy).launch(stream, Grid{count}, y.data(), in(x), 1.0f, count);
    for (uint32_t k = 0; k < count; ++k) expected[k] += x[k];
  }
  stream.synchronize();
  std::vector<float> result(count);
  device.copier.copy(result, y);
  CHECK(result == expected);
}

TEST_CASE("a refused launch with arrays leaves the handle unchanged",
          "[device][launcher][arrays]") {
  ArrayDevice device;
  Streams streams(device.gpu), others(device.gpu);
  Stream stream(streams), foreign(others);
  Launcher chain(streams, device.chain, 8);
  std::vector<uint32_t> values{1, 2, 3};
  chain.launch(stream, Grid{3}, in_out(values), 0u);
  CHECK_THROWS_AS(chain.launch(foreign, Grid{3}, in_out(values), 0u), Error);
  CHECK_THROWS_AS(chain.launch(stream, Grid{4096}.by(4096), in_out(values), 0u), Error);
  chain.launch(stream, Grid{3}, in_out(values), 0u);
  CHECK(values == std::vector<uint32_t>{9, 18, 27});
}
