// Kernel arguments in device memory: results, flushes, and that the host never reads them. Also
// runs under --bar lazy, where the device sees only what was flushed, and --incoherent.
#include <dlfcn.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/large_arguments.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include <uptempo/vgpu/query.h>
#include <uptempo/memory/kernarg_memory.hpp>
#include "test/support/catch.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;

namespace {

constexpr uint32_t kCount = 256;

struct ChainDevice : test::OnDevice {
  Program basics{gpu, builtin_kernels::basics()};
  Kernel<uint32_t*, uint32_t> chain = basics.kernel<uint32_t*, uint32_t>("chain_increment");
  Copier copier{gpu};

  DeviceBuffer<uint32_t> values(uint32_t start) {
    DeviceBuffer<uint32_t> buffer{gpu, kCount};
    copier.fill(buffer, start);
    return buffer;
  }
  bool all_are(const DeviceBuffer<uint32_t>& buffer, uint32_t expected) {
    return test::download(copier, buffer) == std::vector<uint32_t>(kCount, expected);
  }
};

// The virtual GPU's own counts under --bar lazy; zeros otherwise.
uptempo_vgpu_bar_counts bar_counts() {
  uptempo_vgpu_bar_counts counts{};
  const auto query = reinterpret_cast<uptempo_vgpu_bar_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_bar"));
  if (query != nullptr) query(&counts);
  return counts;
}
bool is_lazy() {
  uptempo_vgpu_bar_counts counts{};
  const auto query = reinterpret_cast<uptempo_vgpu_bar_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_bar"));
  return query != nullptr && query(&counts) == 0;
}

// The cost of a piece of work, as the engine and, under --bar lazy, the device count it.
class Spent {
 public:
  uint64_t flushes() const {
    const uint64_t ours = (Counters::now() - before_).hdp_flushes;
    if (is_lazy()) CHECK(bar_counts().hdp_flushes - bar_before_.hdp_flushes == ours);
    return ours;
  }
  uint64_t system_acquires() const { return (Counters::now() - before_).system_acquires; }
  uint64_t read_backs() const { return (Counters::now() - before_).kernarg_read_backs; }
  uint64_t host_reads() const {
    return bar_counts().host_reads_of_device_memory - bar_before_.host_reads_of_device_memory;
  }

 private:
  const Counters before_ = Counters::now();
  const uptempo_vgpu_bar_counts bar_before_ = bar_counts();
};

// Blocks are reused soon: 32 slabs of 3 blocks.
constexpr QueueOptions kSmall{
    .kernarg_bytes = 32 << 10, .kernarg_slab_bytes = 1024, .kernargs = KernargPlacement::device};

}  // namespace

TEST_CASE_METHOD(ChainDevice, "batches flush their arguments once and never read them",
                 "[kernargs]") {
  Queue queue{gpu, kSmall};
  REQUIRE(queue.kernargs().placement == KernargPlacement::device);
  CHECK(queue.kernargs().reason ==
        "asked for, and the host reaches device memory; published by HDP flush");
  const DeviceBuffer<uint32_t> buffer = values(5);
  BatchSubmitter batch{queue};
  uint32_t expected = 5;
  for (const uint32_t length : {1u, 8u, 40u, 1u, 8u, 40u, 16u, 1u}) {
    CAPTURE(length);
    const Spent spent;
    for (uint32_t i = 0; i < length; ++i) {
      batch.dispatch(chain, Grid{kCount}.by(64), buffer.data(), i + length);
      expected = expected * 3 + i + length;
    }
    batch.submit().wait();
    CHECK(spent.flushes() == 1);
    CHECK(spent.read_backs() == 0);
    CHECK(spent.host_reads() == 0);
    CHECK(all_are(buffer, expected));
  }
}

TEST_CASE_METHOD(ChainDevice, "arguments in host memory need no flush", "[kernargs]") {
  Queue queue{gpu};
  CHECK(queue.kernargs().placement == KernargPlacement::host);
  CHECK(queue.kernargs().reason == "asked for");
  const DeviceBuffer<uint32_t> buffer = values(5);
  const Spent spent;
  BatchSubmitter batch{queue};
  batch.dispatch(chain, Grid{kCount}.by(64), buffer.data(), 1u);
  batch.submit().wait();
  CHECK(spent.flushes() + spent.read_backs() + spent.host_reads() == 0);
  CHECK(all_are(buffer, 16));
}

TEST_CASE_METHOD(ChainDevice,
                 "a batch whose packets take no arguments of the queue flushes nothing",
                 "[kernargs]") {
  Queue queue{gpu, kSmall};
  const Spent spent;
  BatchSubmitter batch{queue};
  batch.raw(aql::to_packet(aql::BarrierAnd{}));
  batch.submit().wait();
  CHECK(spent.flushes() == 0);
}

TEST_CASE_METHOD(ChainDevice, "a batch longer than the ring flushes once", "[kernargs]") {
  Queue queue{gpu, {.packets = 64, .kernargs = KernargPlacement::device}};
  const DeviceBuffer<uint32_t> buffer = values(5);
  uint32_t expected = 5;
  const Spent spent;
  BatchSubmitter batch{queue, {.chunking = {.lead = 2, .chunk = 16}}};
  for (uint32_t i = 0; i < 300; ++i) {
    batch.dispatch(chain, Grid{kCount}.by(64), buffer.data(), i);
    expected = expected * 3 + i;
  }
  batch.submit().wait();
  CHECK(spent.flushes() == 1);
  CHECK(spent.host_reads() == 0);
  CHECK(all_are(buffer, expected));
}

TEST_CASE_METHOD(ChainDevice, "a first packet that asks for less acquires at system scope",
                 "[kernargs]") {
  Queue queue{gpu, kSmall};
  const DeviceBuffer<uint32_t> buffer = values(5);
  BatchSubmitter batch{queue};
  uint32_t expected = 5;
  // Every batch takes the blocks that an earlier kernel has read.
  for (uint32_t i = 0; i < 40; ++i) {
    batch.dispatch(chain, Grid{kCount}.by(64), buffer.data(), i)
        .fences(aql::FenceScope::agent, aql::FenceScope::system);
    batch.dispatch(chain, Grid{kCount}.by(64), buffer.data(), i + 1);
    batch.submit().wait();
    expected = (expected * 3 + i) * 3 + i + 1;
  }
  // On gfx942 the host's stores invalidate copies in L2.
  CHECK(batch.plan().front().flags.acquire ==
        (gpu.name() == "gfx942" ? aql::FenceScope::agent : aql::FenceScope::system));
  CHECK(all_are(buffer, expected));
}

TEST_CASE_METHOD(ChainDevice, "threads of a shared queue flush their own arguments", "[kernargs]") {
  SharedQueue shared{gpu, kSmall};
  constexpr uint32_t kThreads = 3, kBatches = 20;
  std::vector<DeviceBuffer<uint32_t>> buffers;
  for (uint32_t t = 0; t < kThreads; ++t) buffers.push_back(values(t));
  const Spent spent;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Queue mine = shared.producer();
      BatchSubmitter batch{mine};
      for (uint32_t i = 0; i < kBatches; ++i) {
        batch.dispatch(chain, Grid{kCount}.by(64), buffers[t].data(), i);
        batch.dispatch(chain, Grid{kCount}.by(64), buffers[t].data(), t);
        batch.submit();
      }
      mine.wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(spent.flushes() == kThreads * kBatches);
  CHECK(spent.host_reads() == 0);
  for (uint32_t t = 0; t < kThreads; ++t) {
    uint32_t expected = t;
    for (uint32_t i = 0; i < kBatches; ++i) expected = (expected * 3 + i) * 3 + t;
    CAPTURE(t);
    CHECK(all_are(buffers[t], expected));
  }
}

TEST_CASE_METHOD(ChainDevice, "a recording flushes what a replay has not written yet",
                 "[kernargs]") {
  Queue queue{gpu, kSmall};
  const DeviceBuffer<uint32_t> first = values(5), second = values(7);
  Recording recording{queue, {.spare_kernarg_bytes = 4096}};
  REQUIRE(recording.kernargs().placement == KernargPlacement::device);
  const Node node = recording.dispatch(chain, Grid{kCount}.by(64), first.data(), 1u);
  const Node other = recording.dispatch(chain, Grid{kCount}.by(64), first.data(), 2u);
  uint32_t expected = 5;
  {
    const Spent spent;
    recording.replay(queue);
    expected = (expected * 3 + 1) * 3 + 2;
    CHECK(spent.flushes() == 1);
    CHECK(spent.host_reads() == 0);
  }
  {  // nothing new
    const Spent spent;
    recording.replay(queue);
    expected = (expected * 3 + 1) * 3 + 2;
    CHECK(spent.flushes() == 0);
  }
  const Spent spent;
  for (uint32_t i = 0; i < 30; ++i) {  // in flight: other blocks
    recording.set<1>(node, i);
    if (i % 3 == 0) recording.set_grid(other, Grid{kCount}.by(i % 2 == 0 ? 32 : 64));
    recording.replay(queue);
    expected = (expected * 3 + i) * 3 + 2;
  }
  queue.wait();
  CHECK(spent.flushes() == 30);
  CHECK(spent.host_reads() == 0);
  CHECK(all_are(first, expected));

  const Node moved = recording.replace(other, chain, Grid{kCount}.by(64), second.data(), 9u);
  recording.set<1>(moved, 10);
  recording.replay(queue).wait();
  CHECK(all_are(first, expected * 3 + 29));
  CHECK(all_are(second, 31));
  CHECK(spent.flushes() == 31);
  CHECK(spent.host_reads() == 0);
}

TEST_CASE_METHOD(ChainDevice, "run-time arguments of a recording are flushed like typed ones",
                 "[kernargs]") {
  Queue queue{gpu, kSmall};
  const DeviceBuffer<uint32_t> first = values(5), second = values(7);
  const Kernel<Arguments> at_run_time = basics.kernel<Arguments>("chain_increment");
  Recording recording{queue, {.spare_kernarg_bytes = 4096}};
  uint32_t* address = first.data();
  uint32_t add = 1;
  void* params[] = {&address, &add};
  const Node node = recording.dispatch(at_run_time, Grid{kCount}.by(64), params);
  const Spent spent;
  recording.replay(queue);
  recording.replay(queue);
  uint32_t expected = (5 * 3 + 1) * 3 + 1;
  CHECK(spent.flushes() == 1);
  for (uint32_t i = 0; i < 20; ++i) {  // in flight: other blocks
    if (i % 2 == 0) {
      recording.set(node, 1, std::as_bytes(std::span(&i, 1)));
    } else {
      add = i;
      recording.set(node, params);
    }
    recording.replay(queue);
    expected = expected * 3 + i;
  }
  recording.set(node, params);  // equal values
  recording.replay(queue);
  expected = expected * 3 + 19;
  address = second.data();
  recording.set(node, params);
  recording.replay(queue).wait();
  CHECK(all_are(first, expected));
  CHECK(all_are(second, 7 * 3 + 19));
  CHECK(spent.flushes() == 22);
  CHECK(spent.host_reads() == 0);
}

TEST_CASE_METHOD(ChainDevice,
                 "a recording made for device memory replays on a queue of host memory",
                 "[kernargs]") {
  Queue on_device{gpu, kSmall}, on_host{gpu};
  const DeviceBuffer<uint32_t> buffer = values(5);
  Recording recording{on_device};
  const Node node = recording.dispatch(chain, Grid{kCount}.by(64), buffer.data(), 1u);
  recording.replay(on_host).wait();
  recording.set<1>(node, 2);
  recording.replay(on_host).wait();
  CHECK(all_are(buffer, (5 * 3 + 1) * 3 + 2));
}

TEST_CASE_METHOD(ChainDevice, "streams flush once for each launch with new arguments",
                 "[kernargs]") {
  Streams streams{gpu, {.hardware_queues = 2, .queue = kSmall}};
  REQUIRE(streams.kernargs().placement == KernargPlacement::device);
  Stream a{streams}, b{streams};
  const DeviceBuffer<uint32_t> first = values(5), second = values(7);
  uint32_t expected = 5, expected_second = 7;
  const Spent spent;
  for (uint32_t i = 0; i < 200; ++i) {
    a.launch(chain, Grid{kCount}.by(64), first.data(), i);
    b.launch(chain, Grid{kCount}.by(64), second.data(), i + 1);
    expected = expected * 3 + i;
    expected_second = expected_second * 3 + i + 1;
  }
  a.synchronize();
  b.synchronize();
  CHECK(spent.flushes() == 400);
  // L2 caches the blocks. On gfx942 the host's stores invalidate its copies, so only launches of
  // idle streams acquire at system scope; the other launches depend on the device's speed.
  if (gpu.name() == "gfx942")
    CHECK(spent.system_acquires() >= 2);
  else
    CHECK(spent.system_acquires() == 400);
  CHECK(spent.host_reads() == 0);
  CHECK(all_are(first, expected));
  CHECK(all_are(second, expected_second));
}

TEST_CASE_METHOD(ChainDevice,
                 "a launcher compares with host memory and flushes only what it writes",
                 "[kernargs]") {
  Streams streams{gpu, {.hardware_queues = 1, .queue = kSmall}};
  Stream stream{streams};
  Launcher<uint32_t*, uint32_t> step{streams, chain, 2};
  const DeviceBuffer<uint32_t> buffer = values(5);
  uint32_t expected = 5;
  const Spent spent;
  for (uint32_t i = 0; i < 100; ++i) {  // two sets of arguments, then many
    const uint32_t argument = i < 60 ? i % 2 : i;
    step.launch(stream, Grid{kCount}.by(64), buffer.data(), argument);
    expected = expected * 3 + argument;
  }
  stream.synchronize();
  CHECK(spent.flushes() == 42);
  CHECK(spent.host_reads() == 0);
  CHECK(all_are(buffer, expected));
}

TEST_CASE_METHOD(ChainDevice, "a read-back publishes what a flush would", "[kernargs]") {
  // The caller's own block in device memory, and the flush that a queue uses without the register.
  detail::KernargMemory memory(&gpu, 4096, true);
  std::byte* const block = memory.data();
  detail::DeviceWrites writes{nullptr, block + 2048};
  Queue queue{gpu};
  const DeviceBuffer<uint32_t> buffer = values(5);
  BatchSubmitter batch{queue};
  uint32_t expected = 5;
  for (uint32_t i = 0; i < 20; ++i) {
    const Spent spent;
    batch.dispatch_at({block, 512}, chain, Grid{kCount}.by(64), buffer.data(), i);
    writes.flush();
    batch.submit().wait();
    expected = expected * 3 + i;
    CHECK(spent.read_backs() == 1);
    CHECK(spent.host_reads() == (is_lazy() ? 1 : 0));
  }
  CHECK(all_are(buffer, expected));
}

TEST_CASE_METHOD(ChainDevice, "automatic chooses host memory on agents not known to profit",
                 "[kernargs]") {
  const Queue queue{gpu, {.kernargs = KernargPlacement::automatic}};
  CHECK(queue.kernargs().asked == KernargPlacement::automatic);
  const bool profits = gpu.name() == "gfx942";  // the only one that the virtual GPU has
  CHECK(queue.kernargs().is_on_device() == profits);
  if (!profits)
    CHECK(queue.kernargs().reason ==
          gpu.name() +
              " is not among the agents known to profit from device "
              "memory (gfx940, gfx941, gfx942, gfx950, gfx1250, gfx1251)");
}

TEST_CASE("the choice of memory follows agent, access, link and register", "[kernargs]") {
  uint32_t hdp = 0;
  const auto choose = [&](const char* name, bool access, uint32_t* flush, KernargPlacement asked,
                          bool xgmi = false) {
    AgentProperties agent;
    agent.name = name;
    agent.xgmi_to_host = xgmi;
    return detail::choose_kernarg_place(agent, access, flush, asked);
  };
  using enum KernargPlacement;
  // CLR, rocsettings.cpp, setKernelArgImpl(): isGfx94x is major 9, minor from 4 on and stepping 0
  // to 2; isGfx125x is major 12, minor from 5 on.
  for (const char* agent : {"gfx940", "gfx941", "gfx942", "gfx950", "gfx1250", "gfx1251"}) {
    CAPTURE(agent);
    CHECK(choose(agent, true, &hdp, automatic).is_on_device());
    CHECK(choose(agent, true, &hdp, automatic).hdp_flush == &hdp);
    CHECK_FALSE(choose(agent, true, &hdp, automatic).coherent_link);
    CHECK_FALSE(choose(agent, false, &hdp, automatic).is_on_device());
    CHECK_FALSE(choose(agent, true, &hdp, host).is_on_device());
  }
  for (const char* agent : {"gfx906", "gfx90a", "gfx1030", "gfx1100", "gfx1201"}) {
    CAPTURE(agent);
    CHECK_FALSE(choose(agent, true, &hdp, automatic).is_on_device());
    CHECK(choose(agent, true, &hdp, device).is_on_device());
  }
  // There, xGMI has precedence over the register, with or without one.
  for (uint32_t* const flush : {&hdp, static_cast<uint32_t*>(nullptr)}) {
    const KernargPlace coherent = choose("gfx942", true, flush, automatic, true);
    CHECK(coherent.is_on_device());
    CHECK(coherent.coherent_link);
    CHECK(coherent.hdp_flush == nullptr);
    CHECK(coherent.reason ==
          "gfx942 profits from device memory, and the host reaches device memory; coherent over "
          "xGMI");
  }
  CHECK_FALSE(choose("gfx942", false, &hdp, automatic, true).coherent_link);
  CHECK_FALSE(choose("gfx90a", true, &hdp, host, true).coherent_link);
  const KernargPlace refused = choose("gfx90a", false, &hdp, device);
  CHECK(refused.placement == host);
  CHECK(refused.asked == device);
  CHECK(refused.hdp_flush == nullptr);
  CHECK(refused.reason == "the host cannot write to device memory of gfx90a: it has no large BAR");
  CHECK(choose("gfx90a", true, nullptr, device).reason ==
        "asked for, and the host reaches device memory; published by read-back");
}

TEST_CASE("stores over a coherent link are neither flushed nor read back", "[kernargs]") {
  uint32_t hdp = 7;
  alignas(64) std::byte line[64]{};
  const Counters before = Counters::now();
  detail::DeviceWrites writes{&hdp, line, true};
  CHECK(writes.needed());
  writes.flush();
  CHECK(hdp == 7);
  CHECK(std::ranges::count(line, std::byte{}) == 64);
  const Counters spent = Counters::now() - before;
  CHECK(spent.hdp_flushes + spent.kernarg_read_backs == 0);
}
