// Launchers on a device.
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/large_arguments.hpp>
#include <uptempo/uptempo.hpp>

#include <array>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;

namespace {

struct LauncherDevice : test::OnDevice {
  Program basics{gpu, builtin_kernels::basics()};
  Kernel<uint32_t*, uint32_t> chain = basics.kernel<uint32_t*, uint32_t>("chain_increment");
  Copier copier{gpu};
};

constexpr size_t kCount = 256;

// A random program of launches on several streams with events between them; the same for the same
// seed.
std::vector<uint32_t> run(LauncherDevice& device, uint64_t seed, bool skips) {
  Streams streams(device.gpu, {.hardware_queues = 2});
  std::deque<Stream> all;
  std::deque<Launcher<uint32_t*, uint32_t>> handles;
  for (uint32_t i = 0; i < 3; ++i) {
    all.emplace_back(streams);
    handles.emplace_back(streams, device.chain, skips ? 1 + i : 0);
  }
  std::vector<DeviceBuffer<uint32_t>> values;
  const std::vector<uint32_t> start(kCount, 7);
  for (size_t i = 0; i < all.size(); ++i) {
    values.emplace_back(device.gpu, kCount);
    device.copier.copy(values.back(), start);
  }
  std::mt19937_64 random(seed);
  uint32_t number = 0;
  for (uint32_t step = 0; step < 300; ++step) {
    if (random() % 4 == 0) number = static_cast<uint32_t>(random() % 3);
    const size_t stream = random() % all.size();
    const size_t at = random() % 3 == 0 ? stream : random() % values.size();
    if (at != stream) {  // the stream runs after the others
      for (Stream& other : all)
        if (&other != &all[stream]) all[stream].after(other.record());
    }
    handles[random() % handles.size()].launch(all[stream], Grid{kCount}.by(64), values[at].data(),
                                              number);
    if (at != stream)
      for (Stream& other : all)
        if (&other != &all[stream]) other.after(all[stream].record());
    if (random() % 32 == 0) all[stream].synchronize();
  }
  for (Stream& stream : all) stream.synchronize();
  std::vector<uint32_t> result;
  for (const auto& buffer : values) {
    const std::vector<uint32_t> part = test::download(device.copier, buffer);
    result.insert(result.end(), part.begin(), part.end());
  }
  return result;
}

}  // namespace

TEST_CASE("random programs give the same bits with and without skipping", "[device][launcher]") {
  LauncherDevice device;
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const Counters before = Counters::now();
    const std::vector<uint32_t> with = run(device, seed, true);
    const uint64_t hits = (Counters::now() - before).argument_hits;
    const std::vector<uint32_t> without = run(device, seed, false);
    CAPTURE(seed);
    CHECK(with == without);
    // The number of hits depends on which blocks the device has read by then.
    CHECK(hits > 0);
    CHECK((Counters::now() - before).argument_hits == hits);
  }
}

TEST_CASE("a rewritten block is read anew", "[device][launcher]") {
  // One block: every step writes where the kernel of the previous step has read.
  LauncherDevice device;
  Streams streams(device.gpu, {.hardware_queues = 1});
  Stream stream(streams);
  Launcher step(streams, device.chain, 1);
  const PinnedBuffer<uint32_t> values(device.gpu, 64);
  std::fill(values.begin(), values.end(), 1u);
  uint32_t expected = 1;
  const Counters before = Counters::now();
  for (uint32_t i = 0; i < 100; ++i) {
    // Twice, since launches in a row would also create a stale copy of the block.
    for (int twice = 0; twice < 2; ++twice) {
      step.launch(stream, Grid{64}, values.data(), i);
      expected = expected * 3 + i;
    }
    stream.synchronize();
    REQUIRE(values[0] == expected);
    REQUIRE(values[63] == expected);
  }
  CHECK((Counters::now() - before).argument_misses == 100);
  CHECK((Counters::now() - before).argument_hits == 100);
}

TEST_CASE("prepared blocks of 64 KiB are read to the last byte, on every queue",
          "[device][launcher]") {
  LauncherDevice device;
  const Program program{device.gpu, builtin_kernels::large_arguments()};
  using Rest = std::array<uint8_t, 65536 - 16>;
  const auto kernel = program.kernel<uint32_t*, uint64_t, Rest>("last_bytes_of_65536");
  Streams streams(device.gpu, {.queue = {.kernarg_slab_bytes = 64 << 10}});
  std::deque<Stream> all;
  for (int i = 0; i < 3; ++i) all.emplace_back(streams);
  const PinnedBuffer<uint32_t> out{device.gpu, 3};
  const auto arguments = std::make_unique<Rest>();
  Launcher step(streams, kernel, 4);
  for (uint8_t reserved = 1; reserved <= 3; ++reserved) {
    arguments->fill(reserved);
    const Counters before = Counters::now();
    for (size_t i = 0; i < 12; ++i) {
      Stream& stream = all[i % all.size()];
      stream.after(all[(i + all.size() - 1) % all.size()].record());  // all write to the same place
      step.launch(stream, Grid{1}, out.data(), uint64_t{2'000}, *arguments);
    }
    arguments->fill(0);
    for (Stream& stream : all) stream.synchronize();
    const Counters spent = Counters::now() - before;
    CHECK(out[0] == reserved * 0x01010101u);
    CHECK(out[2] == reserved);
    CHECK(spent.argument_hits == 11);
    CHECK(spent.argument_bytes_saved == 11 * 65536);
  }
}

TEST_CASE("launchers and their blocks may be destroyed in any order, also after the Runtime",
          "[device][launcher]") {
  for (int i = 0; i < 5; ++i) {
    auto runtime = std::make_unique<Runtime>();
    const Agent gpu = runtime->gpu();
    const Program basics{gpu, builtin_kernels::basics()};
    const auto chain = basics.kernel<uint32_t*, uint32_t>("chain_increment");
    const PinnedBuffer<uint32_t> values(gpu, 64);
    std::fill(values.begin(), values.end(), 1u);
    auto streams = std::make_unique<Streams>(gpu);
    auto stream = std::make_unique<Stream>(*streams);
    auto step = std::make_unique<Launcher<uint32_t*, uint32_t>>(*streams, chain, 8);
    step->launch(*stream, Grid{64}, values.data(), 2u);
    if (i == 0) step.reset();
    if (i == 1) streams.reset();
    if (i == 2) stream.reset();
    if (i == 3) stream.reset(), streams.reset(), step.reset();
    if (stream) stream->synchronize();
    if (i != 2) CHECK(values[0] == 5);
    if (i == 4) runtime.reset();
  }
}
