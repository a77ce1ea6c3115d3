// Recordings on a real HSA queue: replayed on several queues, patched with replays in flight,
// interrupted, and kept after their queue.
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/bitonic_sort.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/on_device.hpp"
#include "tools/support/cost_meter.hpp"

using namespace uptempo;
using namespace std::chrono_literals;

namespace {

using uptempo::test::download;
using uptempo::test::OnDevice;
using uptempo::test::soon;

}  // namespace

TEST_CASE_METHOD(OnDevice, "a recorded sort replays repeatedly, also after its queue is destroyed",
                 "[recording]") {
  std::optional<Queue> queue{gpu};
  Queue other{gpu};
  Copier copier{gpu};
  const DeviceBuffer<uint32_t> keys{gpu, 1024};
  Recording recording{*queue};
  {
    const Program program{gpu, builtin_kernels::bitonic_sort()};
    const auto sort = program.kernel<uint32_t*, uint32_t, uint32_t, uint32_t>("bitonic_sort");
    for (uint32_t stage = 0; stage < 10; ++stage)
      for (uint32_t pass = 0; pass <= stage; ++pass)
        recording.dispatch(sort, Grid{512}.by(64), keys.data(), stage, pass, 1u);
  }  // the recording keeps the code loaded
  std::mt19937 random(1);
  for (int replay = 0; replay < 6; ++replay) {
    std::vector<uint32_t> host(1024);
    std::generate(host.begin(), host.end(), random);
    copier.copy(keys, host);
    recording.replay(replay < 3 ? *queue : other).wait();
    std::sort(host.begin(), host.end());
    CHECK(download(copier, keys) == host);
    if (replay == 2) queue.reset();
  }
}

TEST_CASE_METHOD(OnDevice, "every replay in flight on two queues writes the values set before it",
                 "[recording]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto fill = program.kernel<uint32_t*, uint32_t>("fill");
  const auto iota = program.kernel<uint32_t*, uint32_t, uint32_t>("iota");
  Queue queues[2] = {Queue{gpu}, Queue{gpu}};
  Copier copier{gpu};
  constexpr uint32_t replays = 40, width = 64;
  const DeviceBuffer<uint32_t> out{gpu, replays * 2 * width};
  Recording recording{queues[0]};
  const Node first = recording.dispatch(fill, Grid{width}, out.data(), 0u);
  Node second = recording.dispatch(fill, Grid{width}, out.data(), 0u);
  std::optional<Node<uint32_t*, uint32_t, uint32_t>> third;
  for (uint32_t i = 0; i < replays; ++i) {
    recording.set<0>(first, out.data() + 2 * i * width);
    recording.set<1>(first, i);
    uint32_t* const target = out.data() + (2 * i + 1) * width;
    if (i < replays / 2) {
      recording.set<0>(second, target);
      recording.set<1>(second, i + 100);
    } else if (!third) {
      third = recording.replace(second, iota, Grid{width}, target, i, 2u);
    } else {
      recording.set<0>(*third, target);
      recording.set<1>(*third, i);
    }
    recording.replay(queues[i % 2]);
  }
  for (const Queue& queue : queues) queue.wait();
  const std::vector<uint32_t> host = download(copier, out);
  for (uint32_t i = 0; i < replays; ++i) {
    for (uint32_t k = 0; k < width; ++k) {
      CAPTURE(i, k);
      REQUIRE(host[2 * i * width + k] == i);
      REQUIRE(host[(2 * i + 1) * width + k] == (i < replays / 2 ? i + 100 : i + 2 * k));
    }
  }
}

TEST_CASE_METHOD(OnDevice, "a recording longer than the ring is replayed in parts", "[recording]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto increment = program.kernel<uint32_t*, uint32_t>("chain_increment");
  Queue queue{gpu, {.packets = 256}};
  Copier copier{gpu};
  const DeviceBuffer<uint32_t> values{gpu, 64};
  copier.copy(values, std::span<const uint32_t>(std::vector<uint32_t>(64)));
  Recording recording{queue};
  for (uint32_t i = 0; i < 500; ++i) recording.dispatch(increment, Grid{64}, values.data(), i);
  CHECK(recording.replay(queue, soon()).wait(soon()));
  CHECK(recording.replay(queue, soon()).wait(soon()));
  uint32_t expected = 0;
  for (uint32_t i = 0; i < 1000; ++i) expected = 3 * expected + i % 500;
  CHECK(download(copier, values) == std::vector<uint32_t>(64, expected));
}

TEST_CASE_METHOD(OnDevice,
                 "replays, patched or not, allocate nothing and call nothing but the doorbell",
                 "[recording]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto fill = program.kernel<uint32_t*, uint32_t>("fill");
  Queue queue{gpu};
  const DeviceBuffer<uint32_t> out{gpu, 64};
  Recording recording{queue};
  std::vector<Node<uint32_t*, uint32_t>> nodes;
  for (uint32_t i = 0; i < 30; ++i)
    nodes.push_back(recording.dispatch(fill, Grid{64}, out.data(), i));
  uint32_t number = 0;
  const auto round = [&] {
    Completion last;
    for (int i = 0; i < 8; ++i) {
      for (const auto& node : nodes) recording.set<1>(node, number++);
      recording.replay(queue);
      last = recording.replay(queue);
    }
    last.wait(WaitPolicy::active());
  };
  for (int i = 0; i < 4; ++i) round();
  const support::Cost cost = support::cost_of([&] {
    for (int i = 0; i < 8; ++i) round();
  });
  CHECK(cost.allocations == 0);
  CHECK(cost.locks == 0);
  if (support::sees_system_calls()) CHECK(cost.system_calls == 0);
}

TEST_CASE_METHOD(OnDevice, "packet times of a replay belong to its completion", "[recording]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto fill = program.kernel<uint32_t*, uint32_t>("fill");
  Queue queue{gpu};
  const DeviceBuffer<uint32_t> out{gpu, 64};
  Recording recording{queue, {.timing = Timing::each}};
  for (uint32_t i = 0; i < 10; ++i) recording.dispatch(fill, Grid{64}, out.data(), i);
  for (int replay = 0; replay < 3; ++replay) {
    const Completion done = recording.replay(queue);
    done.wait();
    const std::vector<PacketTime> times = done.times();
    REQUIRE(times.size() == 10);
    for (size_t i = 0; i < times.size(); ++i) {
      CHECK(times[i].start_ns <= times[i].end_ns);
      if (i != 0) CHECK(times[i - 1].end_ns <= times[i].start_ns);
    }
  }
}

TEST_CASE_METHOD(OnDevice, "a replaced kernel stays loaded for the replays in flight",
                 "[recording]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto fill = program.kernel<uint32_t*, uint32_t>("fill");
  Queue queue{gpu};
  Copier copier{gpu};
  const DeviceBuffer<uint32_t> values{gpu, 64};
  copier.copy(values, std::span<const uint32_t>(std::vector<uint32_t>(64, 1)));
  Signal gate{SignalKind::event_less, 1};
  Recording recording{queue};
  recording.raw(aql::to_packet(aql::BarrierAnd{.dependencies = {gate.handle()}}));
  std::optional<Program> passing{std::in_place, gpu, builtin_kernels::basics()};
  Node node = recording.dispatch(passing->kernel<uint32_t*, uint32_t>("chain_increment"), Grid{64},
                                 values.data(), 5u);
  passing.reset();
  const Completion first = recording.replay(queue);
  recording.replace(node, fill, Grid{64}, values.data(), 7u);
  hsa_signal_store_screlease(gate.handle(), 0);
  first.wait();
  CHECK(download(copier, values) == std::vector<uint32_t>(64, 8));
  recording.replay(queue).wait();
  CHECK(download(copier, values) == std::vector<uint32_t>(64, 7));
}
