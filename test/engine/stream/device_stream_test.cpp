// Streams on a device.
#include <engine/uptempo.hpp>
#include <kernels/basics.hpp>
#include <kernels/probes.hpp>
#include <vector>

#include "on_device.hpp"
#include "support/catch.hpp"

using namespace uptempo;
using namespace std::chrono_literals;

namespace {

struct Device {
  Runtime runtime;
  Agent gpu = runtime.gpu();
  Program basics{gpu, kernels::basics()};
  Program probes{gpu, kernels::probes()};
  Kernel<uint32_t*, uint32_t> chain = basics.kernel<uint32_t*, uint32_t>("chain_increment");
  Copier copier{gpu};
};

}  // namespace

TEST_CASE("a chain through several streams gives what the host computes", "[device][stream]") {
  Device device;
  Streams streams(device.gpu);
  constexpr size_t count = 1000;
  DeviceBuffer<uint32_t> values(device.gpu, count);
  std::vector<uint32_t> expected(count, 7);
  device.copier.to_device(values, std::span<const uint32_t>(expected));
  std::deque<Stream> all;
  for (int i = 0; i < 9; ++i) all.emplace_back(streams);
  Event last;
  for (uint32_t step = 0; step < 500; ++step) {
    Stream& stream = all[step * 5 % all.size()];
    stream.wait(last);
    stream.launch(device.chain, Grid{count}.by(64), values.data(), step);
    last = stream.record();
    for (uint32_t& value : expected) value = value * 3 + step;
  }
  last.wait();
  CHECK(test::download(device.copier, values) == expected);
}

TEST_CASE("priority and mask reach the queue", "[device][stream]") {
  Device device;
  Streams streams(device.gpu);
  Stream urgent(streams, {.priority = StreamPriority::high}), masked(streams, {.cu_mask = {0x3}});
  PinnedBuffer<uint32_t> values(device.gpu, 64);
  for (Stream* stream : {&urgent, &masked}) {
    for (uint32_t& value : values) value = 1;
    stream->launch(device.chain, Grid{64}, values.data(), 4u);
    stream->synchronize();
    for (const uint32_t value : values) REQUIRE(value == 7);
  }
  CHECK_THROWS_AS(Stream(streams, {.cu_mask = {0}}), Error);
}
