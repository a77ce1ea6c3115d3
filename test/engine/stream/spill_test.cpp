// Kernarg blocks larger than a slab, against doubles.
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "engine/program/metadata.hpp"
#include "engine/runtime/counters.hpp"
#include "test/engine/stream/stream_devices.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "tools/support/cost_meter.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

// A kernel of one argument that begins and ends with the number that identifies the kernel in the
// log.
template <size_t Bytes>
struct Numbered {
  explicit Numbered(uint32_t number = 0) : first(number), last(number) {}
  uint32_t first;
  std::array<uint32_t, Bytes / 4 - 2> between{};
  uint32_t last;
};

template <size_t Bytes>
const Kernel<Numbered<Bytes>>& numbered_kernel() {
  static const auto kernel =
      kernel_of<Numbered<Bytes>>({.name = "numbered_" + std::to_string(Bytes),
                                  .object = 0x1000 + Bytes,
                                  .kernarg_bytes = Bytes,
                                  .arguments = {argument(ArgumentKind::by_value, 0, Bytes)}});
  return kernel;
}

template <size_t Bytes>
void launch(Stream& stream, uint32_t number) {
  const auto arguments = std::make_unique<Numbered<Bytes>>(number);
  stream.launch(numbered_kernel<Bytes>(), Grid{1}, *arguments);
  *arguments = Numbered<Bytes>(0xdeadbeef);  // the caller may reuse it at once
}

// Each size has a kernel object of its own, so that the device knows the offset of the last
// argument.
struct Checked {
  std::atomic<uint32_t> right{0}, wrong{0};
  void operator()(const hsa_kernel_dispatch_packet_t& packet) {
    const size_t bytes = packet.kernel_object - 0x1000;
    const auto* const block = static_cast<const volatile uint32_t*>(packet.kernarg_address);
    ++(block[0] == block[bytes / 4 - 1] ? right : wrong);
  }
};

constexpr size_t kInSlab = 1024, kLarge = 1028, kLarger = 70'000, kLargest = 131'056;

StreamDevicesOptions options_with(std::shared_ptr<Checked> checked, uint32_t queues = 2) {
  StreamDevicesOptions options;
  options.streams.hardware_queues = queues;
  options.at_end = [checked](const hsa_kernel_dispatch_packet_t& packet) { (*checked)(packet); };
  return options;
}

}  // namespace

TEST_CASE("a block of slab size is in a slab, a block larger by a byte has memory of its own",
          "[stream][spill]") {
  const auto checked = std::make_shared<Checked>();
  StreamDevices devices(options_with(checked));
  Stream a(devices);
  const Counters before = Counters::now();
  launch<kInSlab>(a, 0);
  CHECK((Counters::now() - before).spills == 0);
  launch<kLarge>(a, 1);
  CHECK((Counters::now() - before).spills == 1);
  CHECK((Counters::now() - before).spill_bytes == 1088);
  launch<kLargest>(a, 2);
  CHECK((Counters::now() - before).spills == 2);
  CHECK((Counters::now() - before).spill_bytes == 1088 + 131'072);
  a.synchronize();
  CHECK(checked->right == 3);
  CHECK(checked->wrong == 0);
}

TEST_CASE("memory of large blocks is not reused before its kernel is complete", "[stream][spill]") {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const auto checked = std::make_shared<Checked>();
    StreamDevicesOptions options = options_with(checked);
    options.streams.spill_bytes = 4 << 20;
    options.device = {.seed = seed, .barriers_step_aside = seed == 2};
    StreamDevices devices(options);
    std::deque<Stream> streams;
    for (int i = 0; i < 5; ++i) streams.emplace_back(devices);
    std::mt19937_64 random(seed);
    constexpr uint32_t launches = 2000;
    for (uint32_t i = 0; i < launches; ++i) {
      Stream& stream = streams[random() % streams.size()];
      switch (random() % 4) {
        case 0:
          launch<kInSlab>(stream, i);
          break;
        case 1:
          launch<kLarge>(stream, i);
          break;
        case 2:
          launch<kLarger>(stream, i);
          break;
        default:
          launch<kLargest>(stream, i);
      }
      if (random() % 32 == 0) streams[random() % streams.size()].after(stream.record());
      if (random() % 128 == 0) stream.synchronize();
    }
    devices.streams().synchronize();
    for (Stream& stream : streams) stream.synchronize();
    CHECK(checked->right == launches);
    CHECK(checked->wrong == 0);
  }
}

TEST_CASE("in steady state large blocks are not allocated", "[stream][spill]") {
  const auto checked = std::make_shared<Checked>();
  StreamDevices devices(options_with(checked, 1));
  Stream a(devices);
  const Numbered<kLarger> arguments(7);
  const auto step = [&] {
    for (uint32_t i = 0; i < 8; ++i) a.launch(numbered_kernel<kLarger>(), Grid{1}, arguments);
    a.synchronize();
  };
  // How many blocks are in use at most, before the steady state, depends on the device's speed.
  support::Cost cost{.allocations = 1};
  for (int round = 0; round < 10 && cost.allocations != 0; ++round)
    cost = support::cost_of([&] {
      for (int i = 0; i < 20; ++i) step();
    });
  CHECK(cost.allocations == 0);
  CHECK(checked->wrong == 0);
}

TEST_CASE(
    "a launch without room for its large block waits until its patience ends, and the error names "
    "it",
    "[stream][spill]") {
  const auto checked = std::make_shared<Checked>();
  StreamDevicesOptions options = options_with(checked, 1);
  options.device.paused = true;
  options.streams.patience = 20ms;
  options.streams.spill_bytes = 512 << 10;
  StreamDevices devices(options);
  Stream a(devices);
  uint32_t launched = 0;
  const std::string text = error_of<Error>([&] {
    for (;; ++launched) launch<kLargest>(a, launched);
  });
  CAPTURE(text);
  CHECK(launched == 4);
  CHECK(contains(text, "131072 bytes for the arguments of kernel 'numbered_131056'"));
  CHECK(contains(text, "524288 bytes of blocks larger than a slab"));
  launch<kInSlab>(a, 100);  // others are not blocked
  devices.resume();
  // Kept blocks are freed for another size. A launch waits for the device no longer than its
  // patience.
  for (uint32_t i = 0; i < 50; ++i)
    REQUIRE(eventually_succeeds<Error>([&] { launch<kLarger>(a, 101 + i); }));
  a.synchronize();
  CHECK(checked->right == 55);
  CHECK(checked->wrong == 0);
}

TEST_CASE(
    "a kernel whose arguments never fit is refused at once, with its name, size and the limit",
    "[stream][spill]") {
  const auto checked = std::make_shared<Checked>();
  StreamDevicesOptions options = options_with(checked, 1);
  options.streams.spill_bytes = 100'000;
  StreamDevices devices(options);
  Stream a(devices);
  launch<kLarge>(a, 0);
  const std::string text = error_of<Error>([&] { launch<kLargest>(a, 1); });
  CAPTURE(text);
  CHECK(contains(text, "kernel 'numbered_131056', whose arguments take 131072 bytes"));
  CHECK(contains(text, "100000 bytes at most"));
  CHECK(contains(text, "spill_bytes"));
  launch<kLarge>(a, 2);
  a.synchronize();
  CHECK(checked->right == 2);
}

TEST_CASE("large blocks outlive the stream, and unfinished work when the queues are destroyed",
          "[stream][spill]") {
  const auto checked = std::make_shared<Checked>();
  {
    StreamDevices devices(options_with(checked, 2));
    Stream a(devices), b(devices);
    for (uint32_t i = 0; i < 12; ++i) launch<kLarger>(i % 2 == 0 ? a : b, i);
  }
  CHECK(checked->right == 12);
  CHECK(checked->wrong == 0);
}
