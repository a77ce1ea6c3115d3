// A device with random delays (--delay): every step happens correctly, only later. The delays are
// read from the trace.
#include <sys/resource.h>

#include <atomic>
#include <ctime>
#include <map>
#include <set>
#include <utility>

#include "device/clock.hpp"
#include "device/delays.hpp"
#include "device_fixture.hpp"
#include "sdma_ring.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::test;

namespace {

constexpr uint64_t kMillisecond = 1'000'000;

Options delayed(uint64_t seed) {
  Options options;
  options.delay = seed;
  return traced(options);
}

uint64_t drawn_ns(uint64_t seed, uint32_t queue, DelayPlace place, uint64_t number) {
  return static_cast<uint64_t>(Delays(seed, queue).of(place, number).count());
}

template <typename Condition>
uint64_t first_seed(Condition condition) {
  uint64_t seed = 0;
  while (!condition(seed)) ++seed;
  return seed;
}

// Returns the number after "name": in a trace line.
uint64_t field(const std::string& line, const std::string& name) {
  const size_t at = line.find('"' + name + "\":");
  if (at == std::string::npos) throw std::runtime_error("no " + name + " in " + line);
  return std::stoull(line.substr(at + name.size() + 3));
}

std::vector<std::string> lines_of(const DeviceFixture& device, uint32_t queue,
                                  const std::string& with) {
  std::vector<std::string> result;
  for (const std::string& line : device.trace_lines())
    if (line.find(with) != std::string::npos && field(line, "queue") == queue)
      result.push_back(line);
  return result;
}

bool zero(const amd_signal_t* signal) { return DeviceFixture::value(signal) == 0; }

// Queues that start together: each has `packets` barrier packets after a common gate.
struct GatedQueues {
  GatedQueues(Options options, size_t count, unsigned packets) : device(std::move(options)) {
    for (size_t index = 0; index < count; ++index) {
      queues.push_back(std::make_unique<ComputeQueue>(device));
      done.push_back(device.signal(packets));
      queues.back()->write(barrier_and({gate}));
      for (unsigned packet = 0; packet < packets; ++packet)
        queues.back()->write(barrier_and({}, true, done.back()));
      queues.back()->ring();
    }
  }
  bool run() {
    DeviceFixture::set(gate, 0);
    for (const amd_signal_t* signal : done)
      if (!fires(signal)) return false;
    return true;
  }

  DeviceFixture device;
  amd_signal_t* const gate = device.signal(1);
  std::vector<std::unique_ptr<ComputeQueue>> queues;
  std::vector<amd_signal_t*> done;
};

}  // namespace

TEST_CASE("each packet has the delays of its seed, before it is launched and before it completes") {
  for (const uint64_t seed : {3u, 4u, 5u, 6u}) {
    CAPTURE(seed);
    constexpr unsigned kPackets = 40;
    DeviceFixture device(delayed(seed));
    ComputeQueue queue(device);
    amd_signal_t* done = device.signal(kPackets);
    for (unsigned packet = 0; packet < kPackets; ++packet) {
      if (packet % 2 == 0) {
        queue.write(dispatch(device.kernel(), 1, 1, true, done));
      } else {
        queue.write(barrier_and({}, true, done));
      }
    }
    queue.ring();
    REQUIRE(fires(done));
    const auto packets = lines_of(device, 0, R"("index":)");
    REQUIRE(packets.size() == kPackets);
    uint64_t before = 0;
    for (unsigned packet = 0; packet < kPackets; ++packet) {
      const std::string& line = packets[packet];
      CAPTURE(line);
      REQUIRE(field(line, "index") == packet);
      CHECK(field(line, "launch") == drawn_ns(seed, 0, DelayPlace::launch, packet));
      CHECK(field(line, "completion") == drawn_ns(seed, 0, DelayPlace::completion, packet));
      CHECK(field(line, "interrupt") == drawn_ns(seed, 0, DelayPlace::interrupt, packet));
      CHECK(field(line, "start_ns") >= before + field(line, "launch"));
      before = field(line, "end_ns");
      CHECK(before >= field(line, "start_ns") + field(line, "completion"));
    }
  }
}

TEST_CASE(
    "a seed delays each queue in the same way on every run, and another seed in another way") {
  const auto run = [](uint64_t seed) {
    GatedQueues queues(delayed(seed), 3, 30);
    std::map<uint64_t, std::vector<std::string>> delays;
    if (!queues.run()) return delays;
    for (uint32_t queue = 0; queue < 3; ++queue)
      for (const std::string& line : lines_of(queues.device, queue, R"("index":)"))
        delays[queue].push_back(line.substr(line.find(R"("delays_ns")")));
    return delays;
  };
  const auto once = run(9);
  REQUIRE(once.size() == 3);
  CHECK(once.at(0).size() == 31);
  CHECK(once.at(0) != once.at(1));
  CHECK(once.at(1) != once.at(2));
  CHECK(run(9) == once);
  CHECK(run(10) != once);
}

TEST_CASE("independent queues finish in an order that depends on the seed") {
  std::set<uint64_t> last;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    GatedQueues queues(delayed(seed), 2, 12);
    REQUIRE(queues.run());
    last.insert(field(lines_of(queues.device, 1, R"("index":12)").at(0), "end_ns") >
                field(lines_of(queues.device, 0, R"("index":12)").at(0), "end_ns"));
  }
  CHECK(last.size() == 2);
}

TEST_CASE("a delayed queue delays no other") {
  constexpr unsigned kPackets = 12;
  const auto sum = [](uint64_t seed, uint32_t queue) {
    uint64_t total = drawn_ns(seed, queue, DelayPlace::completion, 0);
    for (unsigned packet = 1; packet <= kPackets; ++packet)
      total += drawn_ns(seed, queue, DelayPlace::launch, packet) +
               drawn_ns(seed, queue, DelayPlace::completion, packet);
    return total;
  };
  const uint64_t seed = first_seed(
      [&](uint64_t each) { return sum(each, 0) > 5 * kMillisecond && sum(each, 1) < 1'000; });
  GatedQueues queues(delayed(seed), 2, kPackets);
  settle();  // doorbells
  REQUIRE(queues.run());
  const auto end_of = [&](uint32_t queue) {
    return field(lines_of(queues.device, queue, R"("index":12)").at(0), "end_ns");
  };
  CHECK(end_of(1) + kMillisecond < end_of(0));
}

TEST_CASE("packets of a queue keep their order, barrier bits and dependencies") {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    constexpr unsigned kLinks = 20;
    DeviceFixture device(delayed(seed));
    ComputeQueue queue(device), other(device);
    amd_signal_t* dependency = device.signal(1);
    amd_signal_t* done = device.signal(1);
    std::vector<unsigned> order;
    std::vector<amd_signal_t*> signals;
    unsigned announced = 0;
    queue.write(barrier_and({dependency}));
    for (unsigned link = 0; link < kLinks; ++link) {
      signals.push_back(device.signal(1));
      queue.write(dispatch(device.kernel([&, link](const Slice&) {
        order.push_back(link);
        // A packet is complete when its signal has been stored to, and its slot is free by then.
        if (link != 0 && zero(signals[link - 1]) && queue.read_index() >= link + 1) ++announced;
        return Result::ended;
      }),
                           1, 1, true, signals.back()));
    }
    queue.write(barrier_and({signals.back()}, false, done));
    queue.ring();
    settle();
    CHECK(order.empty());
    other.submit(barrier_and({}, false, dependency));
    REQUIRE(fires(done));
    REQUIRE(order.size() == kLinks);
    for (unsigned link = 0; link < kLinks; ++link) CHECK(order[link] == link);
    CHECK(announced == kLinks - 1);
  }
}

TEST_CASE("a dispatch without barrier bit passes an earlier one whose completion is delayed") {
  const uint64_t seed = first_seed([](uint64_t each) {
    return drawn_ns(each, 0, DelayPlace::completion, 0) > kMillisecond &&
           drawn_ns(each, 0, DelayPlace::launch, 1) == 0 &&
           drawn_ns(each, 0, DelayPlace::completion, 1) == 0;
  });
  // Repeated, because a worker may lose its core for longer than the delay.
  for (int round = 0; round < 20; ++round) {
    DeviceFixture device(delayed(seed));
    ComputeQueue queue(device);
    amd_signal_t* first = device.signal(1);
    amd_signal_t* second = device.signal(1);
    queue.write(dispatch(device.kernel(), 1, 1, false, first));
    queue.write(dispatch(device.kernel(), 1, 1, false, second));
    queue.ring();
    REQUIRE(eventually([&] { return zero(first) && zero(second); }));
    const auto packets = lines_of(device, 0, R"("index":)");
    REQUIRE(packets.size() == 2);
    CHECK(queue.read_index() == 2);
    if (field(packets[0], "index") == 1) return;
  }
  FAIL("no dispatch passes the delayed one");
}

TEST_CASE("a dependency that was met once stays met until the delayed barrier packet completes") {
  const uint64_t seed = first_seed([](uint64_t each) {
    return drawn_ns(each, 0, DelayPlace::completion, 0) > kMillisecond &&
           drawn_ns(each, 1, DelayPlace::completion, 0) == 0;
  });
  // Repeated, because the gate may open between the reads of the two queues.
  for (int round = 0; round < 20; ++round) {
    DeviceFixture device(delayed(seed));
    ComputeQueue late(device), prompt(device);
    amd_signal_t* gate = device.signal(1);
    amd_signal_t* dependency = device.signal(0);
    amd_signal_t* done = device.signal(1);
    late.submit(barrier_and({gate, dependency}, false, done));
    // -1 afterwards, which satisfies no barrier-AND
    prompt.submit(barrier_and({gate}, false, dependency));
    settle();
    DeviceFixture::set(gate, 0);
    REQUIRE(eventually([&] { return DeviceFixture::value(dependency) == -1; }));
    if (!eventually([&] { return zero(done); }, std::chrono::milliseconds(500))) continue;
    const auto of_late = lines_of(device, 0, R"("index":)");
    const auto of_prompt = lines_of(device, 1, R"("index":)");
    if (field(of_late.at(0), "end_ns") > field(of_prompt.at(0), "end_ns")) return;
  }
  FAIL("the packet waits for its dependency again");
}

TEST_CASE("a delayed event is raised after its signal has its value, even if its queue is gone") {
  const uint64_t seed = first_seed([](uint64_t each) {
    return drawn_ns(each, 0, DelayPlace::interrupt, 0) > kMillisecond &&
           Delays(each, 0).period(DelayPlace::interrupt) == 1;
  });
  DeviceFixture device(delayed(seed));
  std::atomic<uint64_t> raised_ns{0};
  device.interrupts.when_raised = [&](uint32_t event) {
    if (event == 42) raised_ns = host_clock_ns();
  };
  amd_signal_t* done = device.signal(1, 42);
  uint64_t begun_ns = 0;
  {
    ComputeQueue queue(device);
    queue.submit(barrier_and({}, false, done));
    REQUIRE(fires(done));
    const std::atomic_ref mailbox(*reinterpret_cast<uint64_t*>(done->event_mailbox_ptr));
    CHECK(eventually([&] { return mailbox.load(std::memory_order_acquire) == 42; }));
    begun_ns = field(lines_of(device, 0, R"("index":0)").at(0), "end_ns");
  }
  REQUIRE(eventually([&] { return device.interrupts.raised(42) == 1; }));
  CHECK(raised_ns >= begun_ns + drawn_ns(seed, 0, DelayPlace::interrupt, 0));
}

TEST_CASE("a delayed doorbell is seen together with those rung meanwhile") {
  // Independent of which of the two is found first.
  const auto drawn = [](uint64_t seed) {
    return std::min(drawn_ns(seed, 0, DelayPlace::doorbell, 0),
                    drawn_ns(seed, 0, DelayPlace::doorbell, 1));
  };
  const uint64_t seed = first_seed([&](uint64_t each) { return drawn(each) > kMillisecond / 2; });
  DeviceFixture device(delayed(seed));
  ComputeQueue queue(device);
  amd_signal_t* done = device.signal(2);
  const uint64_t rung_ns = host_clock_ns();
  queue.submit(barrier_and({}, false, done));
  queue.submit(barrier_and({}, false, done));
  REQUIRE(fires(done));
  const auto first = lines_of(device, 0, R"("index":0)").at(0);
  CHECK(field(first, "start_ns") >= rung_ns + drawn(seed));
}

TEST_CASE("SDMA packets are delayed one by one and stay in order") {
  for (const uint64_t seed : {1u, 2u, 3u, 5u}) {
    CAPTURE(seed);
    DeviceFixture device(delayed(seed));
    SdmaRing copies(device);
    constexpr uint32_t kWords = 64 * 1024;
    auto* source = device.allocate_object<uint32_t>(kWords);
    auto* middle = device.allocate_object<uint32_t>(kWords);
    auto* destination = device.allocate_object<uint32_t>(kWords);
    amd_signal_t* done = device.signal(5);
    for (uint32_t round = 1; round <= 5; ++round) {
      copies.write(fill(source, round, kWords));
      copies.write(copy(middle, source, kWords * 4));
      copies.write(copy(destination, middle, kWords * 4));
      copies.write(fence(middle, round + 100));
      copies.write(decrement(const_cast<int64_t*>(&done->value)));
      copies.write(trap(round));
    }
    copies.ring();
    REQUIRE(fires(done));
    CHECK(std::all_of(destination, destination + kWords, [](uint32_t word) { return word == 5; }));
    CHECK(middle[0] == 105);
    CHECK(copies.drained());
    for (uint32_t round = 1; round <= 5; ++round)
      CHECK(eventually([&] { return device.interrupts.raised(round) == 1; }));
    const auto packets = lines_of(device, 0, R"("type":"sdma")");
    REQUIRE(packets.size() == 30);
    uint64_t before = 0;
    for (const std::string& line : packets) {
      CAPTURE(line);
      CHECK(field(line, "delay_ns") == drawn_ns(seed, 0, DelayPlace::copy, field(line, "offset")));
      CHECK(field(line, "start_ns") >= before + field(line, "delay_ns"));
      before = field(line, "end_ns");
    }
  }
}

TEST_CASE("dispatches that are not executed are delayed like others") {
  const uint64_t seed = first_seed(
      [](uint64_t each) { return drawn_ns(each, 0, DelayPlace::completion, 0) > kMillisecond; });
  Options options = delayed(seed);
  options.null_kernels = true;
  DeviceFixture device(options);
  ComputeQueue queue(device);
  amd_signal_t* done = device.signal(2);
  queue.write(dispatch(device.kernel(), 256, 64, false, done));
  queue.write(dispatch(device.kernel(), 512, 64, false, done));
  queue.ring();
  REQUIRE(fires(done));
  const auto packets = lines_of(device, 0, R"("type":"kernel_dispatch")");
  REQUIRE(packets.size() == 2);
  CHECK(packets[0].find(R"("kernel":"0x)") != std::string::npos);
  CHECK(packets[0].find(R"("grid":[256,1,1])") != std::string::npos);
  CHECK(field(packets[0], "end_ns") >= field(packets[0], "start_ns") + kMillisecond);
  CHECK(field(packets[1], "start_ns") >= field(packets[0], "end_ns"));
}

// Returns how often the other threads of this process have gone to sleep voluntarily.
uint64_t sleeps_of_others() {
  rusage all{};
  rusage own{};
  getrusage(RUSAGE_SELF, &all);
  getrusage(RUSAGE_THREAD, &own);
  return static_cast<uint64_t>(all.ru_nvcsw - own.ru_nvcsw);
}

TEST_CASE("while everything is delayed the processor sleeps") {
  constexpr unsigned kPackets = 60;
  // Delays much longer than the time for which the processor polls before it sleeps.
  const auto long_delays = [](uint64_t seed) {
    uint64_t count = 0;
    for (unsigned packet = 1; packet <= kPackets; ++packet)
      for (const DelayPlace place : {DelayPlace::launch, DelayPlace::completion})
        if (drawn_ns(seed, 0, place, packet) >= kMillisecond / 2) ++count;
    return count;
  };
  const uint64_t seed = first_seed([&](uint64_t each) { return long_delays(each) >= 10; });
  Options options;
  options.delay = seed;
  GatedQueues queues(options, 1, kPackets);
  settle();
  const uint64_t before = sleeps_of_others();
  DeviceFixture::set(queues.gate, 0);
  while (!zero(queues.done[0])) {
    const timespec pause{0, 200'000};
    nanosleep(&pause, nullptr);
  }
  CHECK(sleeps_of_others() - before >= long_delays(seed));
}

TEST_CASE("without delays the trace has no delay fields", "[prompt]") {
  DeviceFixture device(traced());
  ComputeQueue queue(device);
  amd_signal_t* done = device.signal(1);
  queue.submit(barrier_and({}, false, done));
  REQUIRE(fires(done));
  for (const std::string& line : device.trace_lines()) {
    CAPTURE(line);
    CHECK(line.find("delay") == std::string::npos);
    CHECK(line.back() == '}');
  }
}
