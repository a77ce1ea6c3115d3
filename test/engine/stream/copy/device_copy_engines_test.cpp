// Copy engines on a device. The virtual GPU counts what each engine copies (query.h), so the counts
// do not depend on the library's own. Where ROCr offers no choice (5.2.3), the same programs run,
// and the library says why it does not choose.
#include <dlfcn.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/uptempo.hpp>
#include <vector>

#include <uptempo/vgpu/query.h>
#include "test/support/catch.hpp"
#include "test/support/environment.hpp"
#include "test/support/on_device.hpp"
#include "test/support/text.hpp"

using namespace uptempo;
using namespace uptempo::test;

namespace {

constexpr CopyPath kByEngine = CopyPath::engine;

// By the symbol alone, without the library's search.
bool rocr_offers_engines() {
  return dlsym(RTLD_DEFAULT, "hsa_amd_memory_async_copy_on_engine") != nullptr;
}

// Bytes that each engine of the device has copied.
std::vector<uint64_t> copied() {
  const auto query =
      reinterpret_cast<uptempo_vgpu_copy_engine_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_copy_engine"));
  REQUIRE(query != nullptr);
  std::vector<uint64_t> bytes;
  for (uptempo_vgpu_copy_engine_counts counts{};
       query(static_cast<uint32_t>(bytes.size()), &counts) == 0;)
    bytes.push_back(counts.bytes);
  REQUIRE(bytes.size() >= 2);
  return bytes;
}

std::vector<uint64_t> operator-(std::vector<uint64_t> after, const std::vector<uint64_t>& before) {
  for (size_t i = 0; i < after.size(); ++i) after[i] -= before[i];
  return after;
}

// Only `engine` copied, and that many bytes.
std::vector<uint64_t> only(size_t engine, uint64_t bytes) {
  std::vector<uint64_t> expected(copied().size());
  expected.at(engine) = bytes;
  return expected;
}

struct EngineDevice : OnDevice {
  static constexpr size_t kCount = 100'000, kBytes = kCount * sizeof(uint32_t);
  PinnedBuffer<uint32_t> host{gpu, kCount}, back{gpu, kCount};
  DeviceBuffer<uint32_t> device{gpu, kCount};
  const bool is_gfx90a = gpu.name() == "gfx90a";

  EngineDevice() {
    std::iota(host.begin(), host.end(), 1u);
    std::ranges::fill(back.span(), 0u);
  }
  bool arrived() const { return std::ranges::equal(host.span(), back.span()); }

  // The engine to which the runtime itself gives copies to the device, as the device counts it: 0,
  // but 1 for gfx942 under ROCr 6.4. The other one has those to the host.
  const size_t usual = [this] {
    const auto before = copied();
    Streams streams(gpu, {.choose_engines = false});
    streams.default_stream().copy(device, host, kByEngine);
    streams.synchronize();
    const auto spent = copied() - before;
    return static_cast<size_t>(
        std::ranges::find_if(spent, [](uint64_t bytes) { return bytes != 0; }) - spent.begin());
  }();
  const size_t other_engine = 1 - usual;
};

}  // namespace

TEST_CASE_METHOD(EngineDevice, "copies without load use the usual engine of their direction",
                 "[device][stream][engines]") {
  Streams streams(gpu);
  Stream stream(streams);
  const auto start = copied();
  stream.copy(device, host, kByEngine);
  stream.synchronize();
  CHECK(copied() - start == only(usual, kBytes));
  const auto middle = copied();
  stream.copy(back, device, kByEngine);
  stream.synchronize();
  CHECK(copied() - middle == only(other_engine, kBytes));
  CHECK(arrived());

  const std::string text = streams.describe();
  CAPTURE(text);
  CHECK(count(text, "copies so far: ") == 2);
  CHECK(count(text, ": 1, 400000 bytes") == 2);
  if (rocr_offers_engines()) {
    CHECK(count(text, "copies so far: by engine ") == 2);
    CHECK(contains(text, "engines from host to device: engines 0 and 1, which face the host"));
    CHECK(contains(text, is_gfx90a ? "engines from device to host: engine 1, which"
                                   : "engines from device to host: engines 0 and 1, which"));
  } else {
    CHECK(count(text, "by the runtime's engine") == 2);
    CHECK(count(text, "this ROCr has no hsa_amd_memory_async_copy_on_engine") == 2);
  }
}

// The virtual machine has one GPU, which is its own peer here.
TEST_CASE_METHOD(EngineDevice, "the runtime chooses the engine of copies between host and peer",
                 "[device][stream][engines]") {
  Streams streams(gpu);
  Stream stream(streams);
  const Counters before = Counters::now();
  stream.copy(CopyTarget::peer(gpu, device.data(), kBytes), host, kByEngine);
  stream.copy(back, CopySource::peer(gpu, device.data(), kBytes), kByEngine);
  stream.synchronize();
  CHECK(arrived());
  const std::string text = streams.describe();
  CAPTURE(text);
  CHECK(count(text, "copies so far: ") == 1);
  CHECK(contains(text, "copies so far: between devices by the runtime's engine: 2, "));
  const Counters spent = Counters::now() - before;
  CHECK(spent.bytes_to_device == kBytes);
  CHECK(spent.bytes_to_host == kBytes);
  CHECK(spent.copies_on_device == 0);
}

TEST_CASE_METHOD(EngineDevice, "a copy that waits does not hold up one of another stream",
                 "[device][stream][engines]") {
  const Program probes(gpu, builtin_kernels::probes());
  const auto wait_for_gate = probes.kernel<uint32_t*, uint32_t, uint32_t*>("wait_for_gate");
  PinnedBuffer<uint32_t> words(gpu, 64);
  std::ranges::fill(words.span(), 0u);
  Streams streams(gpu);
  Stream held(streams), free(streams);
  DeviceBuffer<uint32_t> other(gpu, kCount);
  const auto start = copied();
  held.launch(wait_for_gate, Grid{1}, &words[0], UINT32_MAX, &words[32]);
  held.copy(device, host, kByEngine);
  const auto open_gate = [&] { std::atomic_ref(words[0]).store(1, std::memory_order_release); };
  free.copy(other, host, kByEngine);
  if (rocr_offers_engines()) {
    // Behind the waiting copy in one ring, it would never end.
    const bool is_done = free.synchronize(soon());
    CHECK(is_done);
    CHECK_FALSE(held.ready());
    CHECK(copied() - start == only(other_engine, kBytes));
    open_gate();
  } else {
    CHECK_FALSE(free.ready());  // ROCr has one engine per direction
    open_gate();
    REQUIRE(free.synchronize(soon()));
  }
  REQUIRE(held.synchronize(soon()));
  CHECK(words[32] == 1);
  if (!rocr_offers_engines()) CHECK(copied() - start == only(usual, 2 * kBytes));
  held.copy(back, device, kByEngine);
  held.synchronize();
  CHECK(arrived());
}

TEST_CASE_METHOD(EngineDevice, "where ROCr copies by kernels there is no engine to choose",
                 "[device][stream][engines]") {
  const Environment environment{{"HSA_ENABLE_SDMA", "0"}};
  Streams streams(gpu);
  streams.default_stream().copy(device, host, kByEngine);
  streams.synchronize();
  const std::string text = streams.describe();
  CAPTURE(text);
  CHECK(count(text, "copies so far: ") == 1);
  CHECK(contains(text, "copies so far: from host to device by the runtime's engine: 1, "));
  CHECK(count(text, rocr_offers_engines() ? "HSA_ENABLE_SDMA=0 makes ROCr copy by kernels"
                                          : "this ROCr has no") == 2);
}

TEST_CASE_METHOD(EngineDevice, "on request the runtime chooses the engines",
                 "[device][stream][engines]") {
  Streams streams(gpu, {.choose_engines = false});
  Stream one(streams), two(streams);
  const auto start = copied();
  DeviceBuffer<uint32_t> other(gpu, kCount);
  one.copy(device, host, kByEngine);
  two.copy(other, host, kByEngine);
  streams.synchronize();
  CHECK(copied() - start == only(usual, 2 * kBytes));
  const std::string text = streams.describe();
  CAPTURE(text);
  CHECK(count(text, "copies so far: ") == 1);
  CHECK(contains(text, "by the runtime's engine: 2, "));
  CHECK(count(text, "the runtime decides: StreamsOptions::choose_engines") == 2);
}
